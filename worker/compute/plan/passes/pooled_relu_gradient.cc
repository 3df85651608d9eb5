#include <memory>
#include <utility>

#include "worker/compute/plan/fused_ops.h"
#include "worker/compute/plan/passes/passes.h"
#include "worker/compute/plan/plain_relu.h"

namespace shoal {

// Fuses the gradient of a ReLU into that of the max pooling behind it. It applies to the pooled
// gradient, which has a fraction of the elements. The ReLU cuts off the largest element of a window
// exactly when it cuts off the pooled value.
std::optional<Fusion> PooledReluGradient(const Plan& plan, int index) {
  const auto* pooling = PlainOpAt<Pool2DBackwardOp>(plan, index);
  if (pooling == nullptr || pooling->kind != Pool2DOp::Kind::kMax) return std::nullopt;
  Node node = plan.nodes()[index];
  const ValueId dx = node.outputs[0];
  if (plan.consumers(dx).size() != 1 || plan.wanted_outside(dx)) return std::nullopt;
  const int found = plan.consumers(dx)[0];
  const Node& gradient = plan.nodes()[found];
  const auto* relu = OpAt<ActivationBackwardOp>(plan, found);
  if (relu == nullptr || !IsPlainRelu(relu->attributes) || gradient.inputs[1] != node.inputs[0] ||
      gradient.inputs[2] != dx) {
    return std::nullopt;
  }
  auto op = std::make_shared<MaxPool2DBackwardReluOp>(*pooling);
  op->relu = {.max_value = relu->attributes.max_value};
  node.op = std::move(op);
  node.outputs[0] = gradient.outputs[0];
  return Fusion{.node = std::move(node), .absorbed = {found}};
}

}  // namespace shoal
