#include <memory>
#include <utility>

#include "worker/compute/plan/fused_ops.h"
#include "worker/compute/plan/passes/first_read.h"
#include "worker/compute/plan/passes/passes.h"
#include "worker/compute/plan/plain_relu.h"

namespace shoal {

// Fuses the gradient of the ReLU at the end of a residual block into that of a BatchNormalization.
// The ReLU's input is more than the normalization's output. The fused node stores the ReLU's
// gradient for later readers.
std::optional<Fusion> ResidualGradient(const Plan& plan, int index) {
  const auto* backward = PlainOpAt<BatchNormalizationBackwardOp>(plan, index);
  if (backward == nullptr) return std::nullopt;
  Node node = plan.nodes()[index];
  const int found = FirstReadBy(plan, index, node.inputs[1]);
  const auto* relu = OpAt<ActivationBackwardOp>(plan, found);
  if (relu == nullptr || !IsPlainRelu(relu->attributes)) return std::nullopt;
  const Node& gradient = plan.nodes()[found];
  auto op = std::make_shared<BatchNormalizationBackwardFusedOp>(*backward);
  op->relu = {.max_value = relu->attributes.max_value};
  op->has_result = true;
  node.op = std::move(op);
  node.inputs[1] = gradient.inputs[2];
  node.inputs.push_back(gradient.inputs[1]);
  node.outputs.push_back(gradient.outputs[0]);
  return Fusion{.node = std::move(node), .absorbed = {found}};
}

}  // namespace shoal
