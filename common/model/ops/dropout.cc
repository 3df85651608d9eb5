#include "common/model/ops/dropout.h"

#include <memory>

#include "common/model/graph.h"
#include "common/model/ops/shape_checks.h"

namespace shoal {

absl::StatusOr<std::vector<Shape>> DropoutOp::InferShapes(const std::vector<Shape>& inputs) const {
  return SameShapes(inputs, 1);
}

absl::Status DropoutOp::Gradient(GradientBuilder& builder) const {
  auto op = std::make_shared<DropoutBackwardOp>();
  op->rate = rate;
  op->layer_seed = layer_seed;
  op->groups = groups;
  return builder.AddInputGradient(0, op, {builder.output_gradient(0)});
}

absl::StatusOr<std::vector<Shape>> DropoutBackwardOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  return SameShapes(inputs, 1);
}

}  // namespace shoal
