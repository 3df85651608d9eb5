#include "common/model/ops/sparsemax.h"

#include <memory>

#include "common/base/status_macros.h"
#include "common/model/graph.h"
#include "common/model/ops/shape_checks.h"

namespace shoal {

absl::StatusOr<std::vector<Shape>> SparsemaxOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 1, 1));
  if (inputs[0].size() < 2) return CheckRank("input", inputs[0], 2);
  return OneShape(inputs[0]);
}

absl::Status SparsemaxOp::Gradient(GradientBuilder& builder) const {
  return builder.AddInputGradient(0, std::make_shared<SparsemaxBackwardOp>(),
                                  {builder.input(0), builder.output_gradient(0)});
}

absl::StatusOr<std::vector<Shape>> SparsemaxBackwardOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  return SameShapes(inputs, 2);
}

}  // namespace shoal
