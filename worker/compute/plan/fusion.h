#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <typeinfo>
#include <vector>

#include "common/model/graph.h"
#include "worker/compute/plan/plan.h"

namespace shoal {

// Whether a backend has a kernel for a node: its op, and its compute dtype.
using Supports = std::function<bool(const Node& node)>;

// A node in the place of several.
struct Fusion {
  Node node;                  // at the place of the node where the fusion was found
  std::vector<int> absorbed;  // the indices of the other nodes, whose values `node` computes
  // A value that is no longer computed. Its readers read the first output of `node`.
  ValueId dropped = kNoValue;
  // Whether the nodes may have several compute dtypes, because the values of the absorbed ones are
  // the same in each.
  bool any_dtype = false;
};

// Finds a fusion at the node of this index, which is the one that stays.
using FindFusion = std::optional<Fusion> (*)(const Plan& plan, int index);

// Goes through the plan's nodes once and applies each fusion whose node the backend supports. Skips
// a fusion of nodes of several compute dtypes (Fusion::any_dtype), and one whose values would come
// too late for a reader or too early for an input.
void ApplyFusions(FindFusion find, const Supports& supports, Plan& plan);

// The op of the plan's node `index` if it is an OpType or derived from it; null if it is another
// one, or if `index` is -1.
template <typename OpType>
const OpType* OpAt(const Plan& plan, int index) {
  return index < 0 ? nullptr : dynamic_cast<const OpType*>(plan.nodes()[index].op.get());
}
// The same, but null for ops derived from OpType: fused ones.
template <typename OpType>
const OpType* PlainOpAt(const Plan& plan, int index) {
  const auto* op = OpAt<OpType>(plan, index);
  return op != nullptr && typeid(*op) == typeid(OpType) ? op : nullptr;
}

}  // namespace shoal
