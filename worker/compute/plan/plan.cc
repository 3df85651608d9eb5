#include "worker/compute/plan/plan.h"

#include <algorithm>
#include <utility>

namespace shoal {

Plan::Plan(const TrainingGraph& training, PlanMode mode, int64_t examples,
           std::vector<std::shared_ptr<const Metric>> metrics, PlanUse use)
    : training_(&training),
      layout_(training.graph.variables()),
      mode_(mode),
      examples_(examples),
      metrics_(std::move(metrics)),
      use_(use),
      element_types_(training.graph.values().size(), ComputeDtype::kFloat32) {
  SetNodes(SelectNodes());
}

std::vector<Node> Plan::SelectNodes() const {
  const std::vector<Node>& nodes = graph().nodes();
  std::vector<ValueId> results = {training_->prediction};
  if (has_loss()) results.push_back(training_->loss_per_example);
  if (computes_gradients()) {
    const std::vector<ValueId>& pushed = training_->pushed_values;
    results.insert(results.end(), pushed.begin(), pushed.end());
  }
  std::vector<bool> wanted(graph().values().size(), false);
  for (const ValueId result : results) {
    if (result != kNoValue) wanted[result] = true;
  }
  // Walk backwards, from the wanted values to the nodes that they depend on.
  std::vector<Node> selected;
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    if (std::none_of(node->outputs.begin(), node->outputs.end(),
                     [&](ValueId v) { return wanted[v]; }))
      continue;
    selected.push_back(*node);
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      if (node->op->Reads(static_cast<int>(i), in_training_mode())) wanted[node->inputs[i]] = true;
    }
  }
  std::reverse(selected.begin(), selected.end());
  return selected;
}

void Plan::SetNodes(std::vector<Node> nodes) {
  nodes_ = std::move(nodes);
  consumers_.assign(graph().values().size(), {});
  producers_.assign(graph().values().size(), -1);
  for (int index = 0; index < static_cast<int>(nodes_.size()); ++index) {
    const Node& node = nodes_[index];
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.op->Reads(static_cast<int>(i), in_training_mode()))
        consumers_[node.inputs[i]].push_back(index);
    }
    for (const ValueId output : node.outputs) producers_[output] = index;
  }
}

int Plan::FindNode(int id) const {
  const auto found =
      std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& node) { return node.id == id; });
  return found == nodes_.end() ? -1 : static_cast<int>(found - nodes_.begin());
}

bool Plan::wanted_outside(ValueId value) const {
  if (value == training_->prediction || value == training_->loss_per_example) return true;
  return computes_gradients() &&
         std::count(training_->pushed_values.begin(), training_->pushed_values.end(), value) > 0;
}

Shape Plan::shape(ValueId value) const {
  Shape shape = graph().value(value).shape;
  std::replace(shape.begin(), shape.end(), kBatch, examples_);
  return shape;
}

}  // namespace shoal
