#include "common/model/ops/softmax.h"

#include <memory>

#include "common/base/status_macros.h"
#include "common/model/graph.h"
#include "common/model/ops/shape_checks.h"

namespace shoal {

absl::StatusOr<std::vector<Shape>> SoftmaxOp::InferShapes(const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 1, 1));
  if (inputs[0].size() < 2) return CheckRank("input", inputs[0], 2);
  return OneShape(inputs[0]);
}

absl::Status SoftmaxOp::Gradient(GradientBuilder& builder) const {
  auto op = std::make_shared<SoftmaxBackwardOp>();
  op->kind = kind;
  return builder.AddInputGradient(0, op, {builder.output(0), builder.output_gradient(0)});
}

absl::StatusOr<std::vector<Shape>> SoftmaxBackwardOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  return SameShapes(inputs, 2);
}

}  // namespace shoal
