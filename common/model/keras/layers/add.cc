#include "common/model/ops/add.h"

#include <algorithm>
#include <memory>

#include "common/model/keras/layer_table.h"
#include "common/model/keras/merge.h"

namespace shoal {
namespace {

class Add : public LayerConfig {
 public:
  explicit Add(LayerOptions&) {}

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    if (call.inputs().size() == 1) return call.inputs()[0];
    const bool same = std::all_of(call.inputs().begin(), call.inputs().end(), [&](ValueId input) {
      return call.shape(input) == call.input_shape();
    });
    return same ? call.Add(std::make_shared<AddOp>()) : FoldInputs(call, BinaryOp::Kind::kAdd);
  }
};

}  // namespace

extern const LayerType kAddLayer = {"Add", LayerType::Inputs::kSeveral,
                                    "The sum of the inputs; shapes broadcast", ReadAs<Add>};

}  // namespace shoal
