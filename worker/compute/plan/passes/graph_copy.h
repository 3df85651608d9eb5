#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/graph.h"

namespace shoal {

// Copies a model node by node, for a pass that changes some nodes. The copy has the same inputs,
// variables and outputs. The model must outlive the copy.
class GraphCopy {
 public:
  explicit GraphCopy(const Graph& model);

  const Graph& graph() const { return copy_; }
  // The copy's value for the model's `value`: of an input, a variable, or a node that is already
  // added.
  ValueId of(ValueId value) const { return replacement_[value]; }
  // Makes all nodes added from now on read `by` in place of the model's `value`.
  void Replace(ValueId value, ValueId by) { replacement_[value] = by; }
  // Adds a node that the model does not have.
  absl::StatusOr<ValueId> Insert(std::shared_ptr<const Op> op, std::vector<ValueId> inputs,
                                 const std::string& layer) {
    return copy_.Add(std::move(op), std::move(inputs), layer);
  }

  // Adds the model's node, unchanged or with another op and inputs (the model's values).
  absl::Status Add(const Node& node) { return Add(node, node.op, node.inputs); }
  absl::Status Add(const Node& node, std::shared_ptr<const Op> op,
                   const std::vector<ValueId>& inputs);

  // Returns the copy. Call it after adding all nodes.
  Graph Finish() &&;

 private:
  const Graph& model_;
  Graph copy_;
  std::vector<ValueId> replacement_;  // by value of the model
};

}  // namespace shoal
