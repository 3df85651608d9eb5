#include <memory>
#include <utility>

#include "common/model/ops/bias.h"
#include "worker/compute/plan/fused_ops.h"
#include "worker/compute/plan/passes/passes.h"

namespace shoal {

// Fuses the gradient of a bias before a BatchNormalization into the normalization's. It is zero
// (BatchNormalizationBackwardFusedOp::has_dbias).
std::optional<Fusion> ZeroBiasGradient(const Plan& plan, int index) {
  const auto* backward = OpAt<BatchNormalizationBackwardOp>(plan, index);
  if (backward == nullptr || backward->frozen) return std::nullopt;
  Node node = plan.nodes()[index];
  for (const int consumer : plan.consumers(node.outputs[0])) {
    if (OpAt<BiasBackwardOp>(plan, consumer) == nullptr) continue;
    BatchNormalizationBackwardFusedOp op = AsFused(*backward);
    op.has_dbias = true;
    node.op = std::make_shared<BatchNormalizationBackwardFusedOp>(std::move(op));
    node.outputs.push_back(plan.nodes()[consumer].outputs[0]);
    return Fusion{.node = std::move(node), .absorbed = {consumer}, .any_dtype = true};
  }
  return std::nullopt;
}

}  // namespace shoal
