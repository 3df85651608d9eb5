#include "worker/compute/plan/fusion.h"

#include <algorithm>
#include <utility>

namespace shoal {
namespace {

bool Contains(const auto& values, auto value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool FitsDtypes(const Plan& plan, const Fusion& fusion) {
  return fusion.any_dtype ||
         std::all_of(fusion.absorbed.begin(), fusion.absorbed.end(), [&](int index) {
           return plan.nodes()[index].compute_dtype == fusion.node.compute_dtype;
         });
}

// Whether the node's inputs are computed before `index`, and no other node reads the absorbed
// nodes' outputs before that.
bool IsInOrder(const Plan& plan, int index, const Fusion& fusion) {
  for (const ValueId input : fusion.node.inputs) {
    if (plan.producer(input) >= index || Contains(fusion.absorbed, plan.producer(input)))
      return false;
  }
  for (const ValueId output : fusion.node.outputs) {
    if (plan.producer(output) == index) continue;
    for (const int reader : plan.consumers(output)) {
      if (reader < index && !Contains(fusion.absorbed, reader)) return false;
    }
  }
  return true;
}

// Returns the index of the fused node.
int Apply(int index, const Fusion& fusion, Plan& plan) {
  const ValueId result = fusion.node.outputs[0];
  std::vector<Node> nodes;
  int place = -1;
  for (int i = 0; i < static_cast<int>(plan.nodes().size()); ++i) {
    if (Contains(fusion.absorbed, i)) continue;
    if (i == index) place = static_cast<int>(nodes.size());
    nodes.push_back(i == index ? fusion.node : plan.nodes()[i]);
    if (fusion.dropped == kNoValue) continue;
    std::replace(nodes.back().inputs.begin(), nodes.back().inputs.end(), fusion.dropped, result);
  }
  plan.SetNodes(std::move(nodes));
  return place;
}

}  // namespace

void ApplyFusions(FindFusion find, const Supports& supports, Plan& plan) {
  for (int index = 0; index < static_cast<int>(plan.nodes().size()); ++index) {
    std::optional<Fusion> fusion = find(plan, index);
    if (!fusion.has_value() || !FitsDtypes(plan, *fusion) || !IsInOrder(plan, index, *fusion) ||
        !supports(fusion->node)) {
      continue;
    }
    index = Apply(index, *fusion, plan);
  }
}

}  // namespace shoal
