#include <memory>
#include <utility>

#include "worker/compute/plan/fused_ops.h"
#include "worker/compute/plan/passes/first_read.h"
#include "worker/compute/plan/passes/passes.h"

namespace shoal {

// Fuses an Add of two into the gradient of a BatchNormalization that reads it, also through a
// ReLU's gradient that it absorbed. The sum is the gradient of a value that is used in two ways.
// The node is its first reader. After a ReLU's gradient it is the only reader: only what comes out
// of that is stored.
std::optional<Fusion> GradientSum(const Plan& plan, int index) {
  const auto* backward = OpAt<BatchNormalizationBackwardOp>(plan, index);
  if (backward == nullptr) return std::nullopt;
  BatchNormalizationBackwardFusedOp op = AsFused(*backward);
  if (op.relu.has_value() && !op.has_result) return std::nullopt;
  Node node = plan.nodes()[index];
  const ValueId dy = node.inputs[1];
  const int found = FirstReadBy(plan, index, dy);
  if (PlainOpAt<AddOp>(plan, found) == nullptr || plan.nodes()[found].inputs.size() != 2 ||
      (op.has_result && plan.consumers(dy).size() != 1)) {
    return std::nullopt;
  }
  const Node& sum = plan.nodes()[found];
  op.has_summand = true;
  node.inputs[1] = sum.inputs[0];
  node.inputs.push_back(sum.inputs[1]);
  if (!op.has_result) node.outputs.push_back(sum.outputs[0]);
  node.op = std::make_shared<BatchNormalizationBackwardFusedOp>(std::move(op));
  return Fusion{.node = std::move(node), .absorbed = {found}};
}

}  // namespace shoal
