#include "common/model/ops/concatenate.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"

namespace shoal {
namespace {

class Concatenate : public LayerConfig {
 public:
  explicit Concatenate(LayerOptions& options) : axis_(options.Axis("axis", -1)) {}

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    const Shape& first = call.input_shape();
    SHOAL_ASSIGN_OR_RETURN(const int axis, call.InnerAxis(axis_));
    for (const ValueId input : call.inputs()) {
      Shape shape = call.shape(input);
      if (shape.size() == first.size()) shape[axis] = first[axis];
      if (shape == first) continue;
      return call.Invalid(absl::StrCat("joins inputs that differ along axis ", axis,
                                       " alone, got shapes ", ShapeToString(first), " and ",
                                       ShapeToString(call.shape(input))));
    }
    if (call.inputs().size() == 1) return call.inputs()[0];
    auto op = std::make_shared<ConcatenateOp>();
    op->axis = axis;
    return call.Add(std::move(op));
  }

 private:
  const AxisOption axis_;
};

}  // namespace

extern const LayerType kConcatenateLayer = {"Concatenate", LayerType::Inputs::kSeveral,
                                            "The inputs, one behind the other along an axis",
                                            ReadAs<Concatenate>, LayerType::Integers::kAsNumbers};

}  // namespace shoal
