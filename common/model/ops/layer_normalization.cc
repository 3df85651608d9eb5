#include "common/model/ops/layer_normalization.h"

#include <memory>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "common/model/graph.h"
#include "common/model/ops/shape_checks.h"

namespace shoal {

absl::StatusOr<std::vector<Shape>> LayerNormalizationOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckNormalization(inputs, size_t{1} + scale + center));
  return OneShape(inputs[0]);
}

absl::Status LayerNormalizationOp::Gradient(GradientBuilder& builder) const {
  const int gamma = scale ? 1 : -1;
  const int beta = center ? 1 + scale : -1;
  if (!builder.wanted(0) && !(scale && builder.wanted(gamma)) &&
      !(center && builder.wanted(beta))) {
    return absl::OkStatus();
  }
  auto op = std::make_shared<LayerNormalizationBackwardOp>();
  op->epsilon = epsilon;
  op->scale = scale;
  std::vector<ValueId> inputs = {builder.input(0), builder.output_gradient(0)};
  if (scale) inputs.push_back(builder.input(gamma));
  SHOAL_ASSIGN_OR_RETURN(const std::vector<ValueId> gradients,
                         builder.AddNode(std::move(op), std::move(inputs)));
  if (builder.wanted(0)) builder.SetInputGradient(0, gradients[0]);
  if (scale && builder.wanted(gamma)) builder.SetInputGradient(gamma, gradients[1]);
  if (center && builder.wanted(beta)) builder.SetInputGradient(beta, gradients[2]);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Shape>> LayerNormalizationBackwardOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  const size_t count = size_t{2} + scale;
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, count, count));
  SHOAL_RETURN_IF_ERROR(CheckSameShape("gradient", inputs[1], inputs[0]));
  const Shape channels = {inputs[0].back()};
  return std::vector<Shape>{inputs[0], channels, channels};
}

}  // namespace shoal
