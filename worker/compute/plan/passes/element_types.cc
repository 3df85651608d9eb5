#include "worker/compute/plan/passes/element_types.h"

#include <utility>
#include <vector>

#include "worker/compute/plan/fused_ops.h"

namespace shoal {
namespace {

bool IsOfComputeDtype(const Node& node, int output) {
  if (output == 0) return true;
  const auto* fused = dynamic_cast<const BatchNormalizationBackwardFusedOp*>(node.op.get());
  return fused != nullptr && output == fused->total();
}

}  // namespace

void ReplaceUnsupportedDtypes(const Supports& supports, Plan& plan) {
  std::vector<Node> nodes = plan.nodes();
  for (Node& node : nodes) {
    const bool whole = plan.graph().value(node.outputs[0]).whole_numbers.has_value();
    if (whole || !supports(node)) node.compute_dtype = ComputeDtype::kFloat32;
  }
  plan.SetNodes(std::move(nodes));
}

void ChooseElementTypes(Plan& plan) {
  std::vector<ComputeDtype> types(plan.graph().values().size(), ComputeDtype::kFloat32);
  for (const Node& node : plan.nodes()) {
    for (int i = 0; i < static_cast<int>(node.outputs.size()); ++i) {
      const ValueId output = node.outputs[i];
      if (IsOfComputeDtype(node, i) && !plan.wanted_outside(output))
        types[output] = node.compute_dtype;
    }
  }
  plan.SetElementTypes(std::move(types));
}

}  // namespace shoal
