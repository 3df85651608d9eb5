#include "common/model/ops/conv2d.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/graph.h"
#include "common/model/ops/bias.h"
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

// The gradients of the variables come first. The worker can send them while it computes the
// input's.
absl::Status Conv2DOp::Gradient(GradientBuilder& builder) const {
  const ValueId dy = builder.output_gradient(0);
  if (builder.input_count() == 3) {
    SHOAL_RETURN_IF_ERROR(builder.AddInputGradient(2, std::make_shared<BiasBackwardOp>(), {dy}));
  }
  auto weights = std::make_shared<Conv2DBackwardWeightsOp>();
  weights->window = window;
  weights->groups = groups;
  weights->kernel_shape = builder.input_shape(1);
  SHOAL_RETURN_IF_ERROR(builder.AddInputGradient(1, weights, {builder.input(0), dy}));
  auto data = std::make_shared<Conv2DBackwardDataOp>();
  data->window = window;
  data->groups = groups;
  data->x_shape = builder.input_shape(0);
  return builder.AddInputGradient(0, data, {dy, builder.input(1)});
}

absl::StatusOr<std::vector<Shape>> Conv2DBackwardDataOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 2, 2));
  Conv2DOp forward;
  forward.window = window;
  forward.groups = groups;
  SHOAL_RETURN_IF_ERROR(CheckRank("output", x_shape, 4));
  SHOAL_ASSIGN_OR_RETURN(const std::vector<Shape> y, forward.InferShapes({x_shape, inputs[1]}));
  SHOAL_RETURN_IF_ERROR(CheckSameShape("input", inputs[0], y[0]));
  return OneShape(x_shape);
}

// The op is linear in both inputs.
absl::Status Conv2DBackwardDataOp::Gradient(GradientBuilder& builder) const {
  const ValueId gradient = builder.output_gradient(0);
  auto weights = std::make_shared<Conv2DBackwardWeightsOp>();
  weights->window = window;
  weights->groups = groups;
  weights->kernel_shape = builder.input_shape(1);
  SHOAL_RETURN_IF_ERROR(builder.AddInputGradient(1, weights, {gradient, builder.input(0)}));
  auto forward = std::make_shared<Conv2DOp>();
  forward->window = window;
  forward->groups = groups;
  return builder.AddInputGradient(0, forward, {gradient, builder.input(1)});
}

absl::StatusOr<std::vector<Shape>> Conv2DBackwardWeightsOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 2, 2));
  return OneShape(kernel_shape);
}

}  // namespace shoal
