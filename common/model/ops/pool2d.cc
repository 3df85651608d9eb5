#include "common/model/ops/pool2d.h"

#include <memory>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "common/model/graph.h"
#include "common/model/ops/shape_checks.h"

namespace shoal {

absl::StatusOr<std::vector<Shape>> Pool2DOp::InferShapes(const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 1, 1));
  SHOAL_RETURN_IF_ERROR(CheckRank("input", inputs[0], 4));
  SHOAL_ASSIGN_OR_RETURN(Shape y, window.OutputShape(inputs[0]));
  return OneShape(y);
}

absl::Status Pool2DOp::Gradient(GradientBuilder& builder) const {
  auto op = std::make_shared<Pool2DBackwardOp>();
  op->kind = kind;
  op->window = window;
  return builder.AddInputGradient(
      0, op, {builder.input(0), builder.output(0), builder.output_gradient(0)});
}

absl::StatusOr<std::vector<Shape>> Pool2DBackwardOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 3, 3));
  SHOAL_RETURN_IF_ERROR(CheckSameShape("gradient", inputs[2], inputs[1]));
  return OneShape(inputs[0]);
}

absl::StatusOr<std::vector<Shape>> GlobalAveragePool2DOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 1, 1));
  const Shape& x = inputs[0];
  SHOAL_RETURN_IF_ERROR(CheckRank("input", x, 4));
  return OneShape(keep_dims ? Shape{x[0], 1, 1, x[3]} : Shape{x[0], x[3]});
}

absl::Status GlobalAveragePool2DOp::Gradient(GradientBuilder& builder) const {
  auto op = std::make_shared<GlobalAveragePool2DBackwardOp>();
  op->x_shape = builder.input_shape(0);
  return builder.AddInputGradient(0, op, {builder.output_gradient(0)});
}

absl::StatusOr<std::vector<Shape>> GlobalAveragePool2DBackwardOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 1, 1));
  return OneShape(x_shape);
}

}  // namespace shoal
