#include <memory>
#include <utility>

#include "common/model/ops/bias.h"
#include "worker/compute/plan/fused_ops.h"
#include "worker/compute/plan/passes/passes.h"

namespace shoal {

// Fuses the gradient of a convolution's bias into that of its kernel. Both read one gradient.
std::optional<Fusion> BiasGradient(const Plan& plan, int index) {
  Node node = plan.nodes()[index];
  if (const auto* op = PlainOpAt<Conv2DBackwardWeightsOp>(plan, index)) {
    node.op = std::make_shared<Conv2DBackwardVariablesOp>(*op);
  } else if (const auto* op = PlainOpAt<DepthwiseConv2DBackwardWeightsOp>(plan, index)) {
    node.op = std::make_shared<DepthwiseConv2DBackwardVariablesOp>(*op);
  } else {
    return std::nullopt;
  }
  for (const int consumer : plan.consumers(node.inputs[1])) {
    if (OpAt<BiasBackwardOp>(plan, consumer) == nullptr) continue;
    node.outputs.push_back(plan.nodes()[consumer].outputs[0]);
    return Fusion{.node = std::move(node), .absorbed = {consumer}};
  }
  return std::nullopt;
}

}  // namespace shoal
