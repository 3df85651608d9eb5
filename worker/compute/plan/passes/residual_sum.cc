#include <memory>
#include <utility>

#include "worker/compute/plan/fused_ops.h"
#include "worker/compute/plan/passes/passes.h"

namespace shoal {

// Fuses an Add of two into the BatchNormalization whose output only the Add reads. The other
// summand must be computed before.
std::optional<Fusion> ResidualSum(const Plan& plan, int index) {
  const auto* normalization = PlainOpAt<BatchNormalizationOp>(plan, index);
  if (normalization == nullptr) return std::nullopt;
  Node node = plan.nodes()[index];
  const ValueId y = node.outputs[0];
  if (plan.consumers(y).size() != 1 || plan.wanted_outside(y)) return std::nullopt;
  const int add = plan.consumers(y)[0];
  const Node& sum = plan.nodes()[add];
  if (PlainOpAt<AddOp>(plan, add) == nullptr || sum.inputs.size() != 2) return std::nullopt;
  node.op = std::make_shared<BatchNormalizationAddOp>(*normalization);
  node.inputs.push_back(sum.inputs[sum.inputs[0] == y ? 1 : 0]);
  node.outputs[0] = sum.outputs[0];
  return Fusion{.node = std::move(node), .absorbed = {add}};
}

}  // namespace shoal
