#include <memory>
#include <utility>

#include "worker/compute/plan/fused_ops.h"
#include "worker/compute/plan/passes/passes.h"

namespace shoal {
namespace {

template <typename Base, typename Fused>
std::shared_ptr<Fused> Folded(const Plan& plan, int index,
                              const BatchNormalizationOp& normalization) {
  const auto* op = PlainOpAt<Base>(plan, index);
  if (op == nullptr) return nullptr;
  auto fused = std::make_shared<Fused>(*op);
  fused->has_bias = plan.nodes()[index].inputs.size() == 3;
  fused->normalization = normalization;
  return fused;
}

}  // namespace

// Folds a BatchNormalization into the convolution before it, in inference. No other node reads the
// convolution's output.
std::optional<Fusion> FoldNormalization(const Plan& plan, int index) {
  if (plan.in_training_mode()) return std::nullopt;
  const ValueId convolved = plan.nodes()[index].outputs[0];
  if (plan.consumers(convolved).size() != 1 || plan.wanted_outside(convolved)) return std::nullopt;
  const int found = plan.consumers(convolved)[0];
  const auto* normalization = PlainOpAt<BatchNormalizationOp>(plan, found);
  const std::vector<ValueId>& inputs = plan.nodes()[found].inputs;
  if (normalization == nullptr || inputs[0] != convolved) return std::nullopt;
  std::shared_ptr<const Op> op =
      Folded<Conv2DOp, Conv2DNormalizationOp>(plan, index, *normalization);
  if (!op) {
    op = Folded<DepthwiseConv2DOp, DepthwiseConv2DNormalizationOp>(plan, index, *normalization);
  }
  if (!op) return std::nullopt;
  Node node = plan.nodes()[index];
  node.op = std::move(op);
  node.inputs.insert(node.inputs.end(), inputs.begin() + 1, inputs.end());
  node.outputs[0] = plan.nodes()[found].outputs[0];
  return Fusion{.node = std::move(node), .absorbed = {found}};
}

}  // namespace shoal
