#include "common/model/ops/concatenate.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/graph.h"
#include "common/model/ops/pad.h"
#include "common/model/ops/shape_checks.h"

namespace shoal {

absl::StatusOr<std::vector<Shape>> ConcatenateOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  if (inputs.empty()) return CheckInputCount(inputs, 1, inputs.max_size());
  if (axis < 1 || axis >= static_cast<int>(inputs[0].size())) {
    return absl::InvalidArgumentError(absl::StrCat("inputs of shape ", ShapeToString(inputs[0]),
                                                   " cannot be concatenated along axis ", axis));
  }
  Shape y = inputs[0];
  for (size_t i = 1; i < inputs.size(); ++i) {
    Shape fitting = inputs[i];
    if (fitting.size() == y.size()) fitting[axis] = inputs[0][axis];
    if (fitting != inputs[0]) {
      return absl::InvalidArgumentError(absl::StrCat(
          "inputs of the shapes ", ShapeToString(inputs[0]), " and ", ShapeToString(inputs[i]),
          " cannot be concatenated along axis ", axis, "; their other axes must be equal"));
    }
    y[axis] += inputs[i][axis];
  }
  return OneShape(y);
}

absl::Status ConcatenateOp::Gradient(GradientBuilder& builder) const {
  int64_t before = 0, after = 0;
  for (int i = 0; i < builder.input_count(); ++i) after += builder.input_shape(i)[axis];
  for (int i = 0; i < builder.input_count(); ++i) {
    const Shape& x = builder.input_shape(i);
    auto op = std::make_shared<CropOp>();
    op->margins.before.assign(x.size() - 1, 0);
    op->margins.after.assign(x.size() - 1, 0);
    after -= x[axis];
    op->margins.before[axis - 1] = before;
    op->margins.after[axis - 1] = after;
    before += x[axis];
    SHOAL_RETURN_IF_ERROR(builder.AddInputGradient(i, op, {builder.output_gradient(0)}));
  }
  return absl::OkStatus();
}

}  // namespace shoal
