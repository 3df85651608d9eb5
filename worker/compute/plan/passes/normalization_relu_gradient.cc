#include <memory>
#include <utility>

#include "worker/compute/plan/fused_ops.h"
#include "worker/compute/plan/passes/passes.h"
#include "worker/compute/plan/plain_relu.h"

namespace shoal {

// Fuses the gradient of a ReLU into that of the BatchNormalization whose output the ReLU read. No
// other node reads the ReLU's gradient.
std::optional<Fusion> NormalizationReluGradient(const Plan& plan, int index) {
  const auto* backward = PlainOpAt<BatchNormalizationBackwardOp>(plan, index);
  if (backward == nullptr) return std::nullopt;
  Node node = plan.nodes()[index];
  const ValueId dy = node.inputs[1];
  const int found = plan.producer(dy);
  const auto* relu = OpAt<ActivationBackwardOp>(plan, found);
  if (relu == nullptr || !IsPlainRelu(relu->attributes) || plan.consumers(dy).size() != 1 ||
      plan.wanted_outside(dy)) {
    return std::nullopt;
  }
  // The normalization may have absorbed the ReLU. With a sum before the ReLU it has another output.
  const int forward = plan.FindNode(node.gradient_of);
  const auto* normalization = OpAt<BatchNormalizationOp>(plan, forward);
  if (normalization == nullptr || OpAt<BatchNormalizationAddOp>(plan, forward) != nullptr ||
      plan.producer(plan.nodes()[found].inputs[0]) != forward) {
    return std::nullopt;
  }
  auto op = std::make_shared<BatchNormalizationBackwardFusedOp>(*backward);
  op->relu = {.max_value = relu->attributes.max_value};
  op->center = normalization->center;
  node.inputs[1] = plan.nodes()[found].inputs[2];
  if (op->center) node.inputs.push_back(plan.nodes()[forward].inputs[3 + normalization->scale]);
  node.op = std::move(op);
  return Fusion{.node = std::move(node), .absorbed = {found}};
}

}  // namespace shoal
