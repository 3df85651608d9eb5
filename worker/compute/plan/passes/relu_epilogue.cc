#include <memory>
#include <utility>

#include "worker/compute/plan/fused_ops.h"
#include "worker/compute/plan/passes/passes.h"
#include "worker/compute/plan/plain_relu.h"

namespace shoal {
namespace {

// The ReLU that is the only reader of the node's output, except for its own gradient, which can use
// the result instead; -1: none.
int FindRelu(const Plan& plan, int index) {
  const ValueId output = plan.nodes()[index].outputs[0];
  if (plan.wanted_outside(output)) return -1;
  int relu = -1;
  for (const int consumer : plan.consumers(output)) {
    const std::vector<ValueId>& inputs = plan.nodes()[consumer].inputs;
    const auto* gradient = OpAt<ActivationBackwardOp>(plan, consumer);
    if (gradient != nullptr && IsPlainRelu(gradient->attributes) && inputs[0] == output &&
        inputs[1] != output && inputs[2] != output) {
      continue;
    }
    const auto* activation = OpAt<ActivationOp>(plan, consumer);
    if (relu >= 0 || activation == nullptr || !IsPlainRelu(activation->attributes)) return -1;
    relu = consumer;
  }
  return relu;
}

template <typename Base, typename Fused>
std::shared_ptr<Fused> WithRelu(const Plan& plan, int index, const FusedRelu& relu) {
  const auto* op = PlainOpAt<Base>(plan, index);
  if (op == nullptr) return nullptr;
  auto fused = std::make_shared<Fused>(*op);
  fused->relu = relu;
  return fused;
}

}  // namespace

// Fuses a ReLU into the node that computes its input.
std::optional<Fusion> ReluEpilogue(const Plan& plan, int index) {
  const int found = FindRelu(plan, index);
  if (found < 0) return std::nullopt;
  const FusedRelu relu = {.max_value = OpAt<ActivationOp>(plan, found)->attributes.max_value};
  std::shared_ptr<const Op> op = WithRelu<Conv2DOp, Conv2DReluOp>(plan, index, relu);
  if (!op) op = WithRelu<DepthwiseConv2DOp, DepthwiseConv2DReluOp>(plan, index, relu);
  if (!op) op = WithRelu<Conv2DNormalizationOp, Conv2DNormalizationReluOp>(plan, index, relu);
  if (!op) {
    op = WithRelu<DepthwiseConv2DNormalizationOp, DepthwiseConv2DNormalizationReluOp>(plan, index,
                                                                                      relu);
  }
  if (!op) op = WithRelu<DenseOp, DenseReluOp>(plan, index, relu);
  if (!op) op = WithRelu<AddOp, AddReluOp>(plan, index, relu);
  if (!op) op = WithRelu<BatchNormalizationOp, BatchNormalizationReluOp>(plan, index, relu);
  if (!op) op = WithRelu<BatchNormalizationAddOp, BatchNormalizationAddReluOp>(plan, index, relu);
  if (!op) return std::nullopt;
  Node node = plan.nodes()[index];
  node.op = std::move(op);
  const ValueId dropped = std::exchange(node.outputs[0], plan.nodes()[found].outputs[0]);
  return Fusion{.node = std::move(node), .absorbed = {found}, .dropped = dropped};
}

}  // namespace shoal
