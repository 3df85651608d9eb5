#include "common/model/ops/mode_switch.h"

#include "common/model/graph.h"
#include "common/model/ops/shape_checks.h"

namespace shoal {

absl::StatusOr<std::vector<Shape>> ModeSwitchOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  return SameShapes(inputs, 2);
}

// The gradient goes to the training value.
absl::Status ModeSwitchOp::Gradient(GradientBuilder& builder) const {
  builder.SetInputGradient(0, builder.output_gradient(0));
  return absl::OkStatus();
}

}  // namespace shoal
