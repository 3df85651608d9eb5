#include "common/model/ops/depthwise_conv2d.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/graph.h"
#include "common/model/ops/bias.h"
#include "common/model/ops/shape_checks.h"

namespace shoal {

absl::StatusOr<std::vector<Shape>> DepthwiseConv2DOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 2, 3));
  const Shape& x = inputs[0];
  const Shape& kernel = inputs[1];
  SHOAL_RETURN_IF_ERROR(CheckRank("input", x, 4));
  SHOAL_RETURN_IF_ERROR(CheckRank("kernel", kernel, 4));
  if (kernel[0] != window.size[0] || kernel[1] != window.size[1] || kernel[2] != x[3]) {
    return absl::InvalidArgumentError(absl::StrCat("input of shape ", ShapeToString(x),
                                                   " does not fit the kernel of shape ",
                                                   ShapeToString(kernel)));
  }
  // Check before computing the product, because the factors come from a file.
  SHOAL_RETURN_IF_ERROR(CheckElementCount(kernel));
  const int64_t filters = kernel[2] * kernel[3];
  if (inputs.size() == 3) SHOAL_RETURN_IF_ERROR(CheckSameShape("bias", inputs[2], {filters}));
  SHOAL_ASSIGN_OR_RETURN(Shape y, window.OutputShape(x));
  y[3] = filters;
  return OneShape(y);
}

// The gradients of the variables come first. The worker can send them while it computes the
// input's.
absl::Status DepthwiseConv2DOp::Gradient(GradientBuilder& builder) const {
  const ValueId dy = builder.output_gradient(0);
  if (builder.input_count() == 3) {
    SHOAL_RETURN_IF_ERROR(builder.AddInputGradient(2, std::make_shared<BiasBackwardOp>(), {dy}));
  }
  auto weights = std::make_shared<DepthwiseConv2DBackwardWeightsOp>();
  weights->window = window;
  weights->kernel_shape = builder.input_shape(1);
  SHOAL_RETURN_IF_ERROR(builder.AddInputGradient(1, weights, {builder.input(0), dy}));
  auto data = std::make_shared<DepthwiseConv2DBackwardDataOp>();
  data->window = window;
  data->x_shape = builder.input_shape(0);
  return builder.AddInputGradient(0, data, {dy, builder.input(1)});
}

absl::StatusOr<std::vector<Shape>> DepthwiseConv2DBackwardDataOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 2, 2));
  return OneShape(x_shape);
}

absl::StatusOr<std::vector<Shape>> DepthwiseConv2DBackwardWeightsOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 2, 2));
  return OneShape(kernel_shape);
}

}  // namespace shoal
