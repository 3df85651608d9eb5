#include "common/model/ops/batch_normalization.h"

#include <memory>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "common/model/graph.h"
#include "common/model/ops/shape_checks.h"

namespace shoal {

absl::StatusOr<std::vector<Shape>> BatchNormalizationOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckNormalization(inputs, size_t{3} + scale + center));
  const Shape channels = {inputs[0].back()};
  return std::vector<Shape>{inputs[0], channels, channels};
}

absl::Status BatchNormalizationOp::Gradient(GradientBuilder& builder) const {
  const int gamma = scale ? 3 : -1;
  const int beta = center ? 3 + scale : -1;
  if (!builder.wanted(0) && !(scale && builder.wanted(gamma)) &&
      !(center && builder.wanted(beta))) {
    return absl::OkStatus();
  }
  auto op = std::make_shared<BatchNormalizationBackwardOp>();
  op->epsilon = epsilon;
  op->scale = scale;
  op->frozen = frozen;
  std::vector<ValueId> inputs = {builder.input(0), builder.output_gradient(0),
                                 frozen ? builder.input(1) : builder.output(1),
                                 frozen ? builder.input(2) : builder.output(2)};
  if (scale) inputs.push_back(builder.input(gamma));
  SHOAL_ASSIGN_OR_RETURN(const std::vector<ValueId> gradients,
                         builder.AddNode(std::move(op), std::move(inputs)));
  if (builder.wanted(0)) builder.SetInputGradient(0, gradients[0]);
  if (scale && builder.wanted(gamma)) builder.SetInputGradient(gamma, gradients[1]);
  if (center && builder.wanted(beta)) builder.SetInputGradient(beta, gradients[2]);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Shape>> BatchNormalizationBackwardOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  const size_t count = size_t{4} + scale;
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, count, count));
  SHOAL_RETURN_IF_ERROR(CheckSameShape("gradient", inputs[1], inputs[0]));
  return std::vector<Shape>{inputs[0], inputs[2], inputs[2]};
}

}  // namespace shoal
