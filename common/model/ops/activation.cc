#include "common/model/ops/activation.h"

#include <memory>

#include "common/model/graph.h"
#include "common/model/ops/shape_checks.h"

namespace shoal {

absl::StatusOr<std::vector<Shape>> ActivationOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  return SameShapes(inputs, 1);
}

absl::Status ActivationOp::Gradient(GradientBuilder& builder) const {
  auto op = std::make_shared<ActivationBackwardOp>();
  op->attributes = attributes;
  return builder.AddInputGradient(
      0, op, {builder.input(0), builder.output(0), builder.output_gradient(0)});
}

absl::StatusOr<std::vector<Shape>> ActivationBackwardOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  return SameShapes(inputs, 3);
}

}  // namespace shoal
