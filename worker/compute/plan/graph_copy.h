#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/graph.h"

namespace shoal {

// A model made anew, node by node, for a pass that changes some of them: same inputs, variables and
// outputs. The model outlives the copy.
class GraphCopy {
 public:
  explicit GraphCopy(const Graph& model);

  const Graph& graph() const { return copy_; }
  // The copy's value in place of the model's. Of nodes that have been added, inputs and variables.
  ValueId of(ValueId value) const { return replacement_[value]; }
  // Has what is added from now on read `by` in place of the model's `value`.
  void Replace(ValueId value, ValueId by) { replacement_[value] = by; }
  // A node of the copy alone.
  absl::StatusOr<ValueId> Insert(std::shared_ptr<const Op> op, std::vector<ValueId> inputs,
                                 const std::string& layer) {
    return copy_.Add(std::move(op), std::move(inputs), layer);
  }

  // Adds the model's node, as it is or with another op and inputs (the model's values).
  absl::Status Add(const Node& node) { return Add(node, node.op, node.inputs); }
  absl::Status Add(const Node& node, std::shared_ptr<const Op> op,
                   const std::vector<ValueId>& inputs);

  // When all nodes have been added.
  Graph Finish() &&;

 private:
  const Graph& model_;
  Graph copy_;
  std::vector<ValueId> replacement_;  // by value of the model
};

}  // namespace shoal
