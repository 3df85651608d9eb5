#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/ops.h"
#include "common/model/ops/shape_checks.h"

namespace shoal {

absl::StatusOr<std::vector<Shape>> Conv2DOp::InferShapes(const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 2, 3));
  const Shape& x = inputs[0];
  const Shape& kernel = inputs[1];
  SHOAL_RETURN_IF_ERROR(CheckRank("input", x, 4));
  SHOAL_RETURN_IF_ERROR(CheckRank("kernel", kernel, 4));
  if (kernel[0] != window.size[0] || kernel[1] != window.size[1] || kernel[2] * groups != x[3]) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input of shape ", ShapeToString(x), " does not fit the kernel of shape ",
        ShapeToString(kernel), groups == 1 ? "" : absl::StrCat(" in ", groups, " groups")));
  }
  if (kernel[3] % groups != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(kernel[3], " filters cannot be split into ", groups, " equal groups"));
  }
  if (inputs.size() == 3) SHOAL_RETURN_IF_ERROR(CheckSameShape("bias", inputs[2], {kernel[3]}));
  SHOAL_ASSIGN_OR_RETURN(Shape y, window.OutputShape(x));
  y[3] = kernel[3];
  return OneShape(y);
}

// The variables' gradients come first: they can leave the worker while the input's is computed.
absl::Status Conv2DOp::Gradient(GradientBuilder& builder) const {
  const ValueId dy = builder.output_gradient(0);
  if (builder.input_count() == 3 && builder.wanted(2)) {
    SHOAL_ASSIGN_OR_RETURN(const ValueId dbias,
                           builder.Add(std::make_shared<BiasBackwardOp>(), {dy}));
    builder.SetInputGradient(2, dbias);
  }
  if (builder.wanted(1)) {
    auto op = std::make_shared<Conv2DBackwardWeightsOp>();
    op->window = window;
    op->groups = groups;
    op->kernel_shape = builder.input_shape(1);
    SHOAL_ASSIGN_OR_RETURN(const ValueId dkernel, builder.Add(op, {builder.input(0), dy}));
    builder.SetInputGradient(1, dkernel);
  }
  if (builder.wanted(0)) {
    auto op = std::make_shared<Conv2DBackwardDataOp>();
    op->window = window;
    op->groups = groups;
    op->x_shape = builder.input_shape(0);
    SHOAL_ASSIGN_OR_RETURN(const ValueId dx, builder.Add(op, {dy, builder.input(1)}));
    builder.SetInputGradient(0, dx);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Shape>> Conv2DBackwardDataOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 2, 2));
  return OneShape(x_shape);
}

absl::StatusOr<std::vector<Shape>> Conv2DBackwardWeightsOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 2, 2));
  return OneShape(kernel_shape);
}

}  // namespace shoal
