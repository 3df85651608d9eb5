#include <memory>

#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"
#include "common/model/ops/reshape.h"

namespace shoal {
namespace {

class Flatten : public LayerConfig {
 public:
  explicit Flatten(LayerOptions& options) { options.ExpectChannelsLast(); }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    const Shape& x = call.input_shape();
    auto op = std::make_shared<ReshapeOp>();
    op->shape = {kBatch, ElementCount(Shape(x.begin() + 1, x.end()))};
    if (op->shape == x) return call.inputs()[0];
    return call.Add(std::move(op));
  }
};

}  // namespace

extern const LayerType kFlattenLayer = {"Flatten", LayerType::Inputs::kOne,
                                        "All elements of an example in one axis", ReadAs<Flatten>,
                                        LayerType::Integers::kAsNumbers};

}  // namespace shoal
