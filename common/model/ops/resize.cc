#include "common/model/ops/resize.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/graph.h"
#include "common/model/ops/shape_checks.h"

namespace shoal {

absl::StatusOr<std::vector<Shape>> ResizeOp::InferShapes(const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 1, 1));
  const Shape& x = inputs[0];
  SHOAL_RETURN_IF_ERROR(CheckRank("input", x, 4));
  if (height < 1 || width < 1 || x[1] < 1 || x[2] < 1) {
    return absl::InvalidArgumentError(absl::StrCat("an image of shape ", ShapeToString(x),
                                                   " cannot be resized to ", height, " x ", width));
  }
  return OneShape({x[0], height, width, x[3]});
}

absl::Status ResizeOp::Gradient(GradientBuilder& builder) const {
  auto op = std::make_shared<ResizeBackwardOp>();
  op->x_shape = builder.input_shape(0);
  op->interpolation = interpolation;
  return builder.AddInputGradient(0, op, {builder.output_gradient(0)});
}

absl::StatusOr<std::vector<Shape>> ResizeBackwardOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 1, 1));
  return OneShape(x_shape);
}

}  // namespace shoal
