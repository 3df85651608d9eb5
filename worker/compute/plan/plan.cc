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
      consumers_(training.graph.values().size()) {
  SelectNodes();
}

void Plan::SelectNodes() {
  const std::vector<Node>& nodes = graph().nodes();
  std::vector<ValueId> results = {training_->prediction};
  if (has_loss()) results.push_back(training_->loss_per_example);
  if (trains()) {
    const std::vector<ValueId>& pushed = training_->pushed_values;
    results.insert(results.end(), pushed.begin(), pushed.end());
  }
  std::vector<bool> wanted(graph().values().size(), false);
  for (const ValueId result : results) {
    if (result != kNoValue) wanted[result] = true;
  }
  // Walk backwards, from the wanted values to the nodes that they depend on.
  for (int i = static_cast<int>(nodes.size()) - 1; i >= 0; --i) {
    const std::vector<ValueId>& outputs = nodes[i].outputs;
    if (std::none_of(outputs.begin(), outputs.end(), [&](ValueId v) { return wanted[v]; }))
      continue;
    nodes_.push_back(i);
    for (size_t k = 0; k < nodes[i].inputs.size(); ++k) {
      if (!nodes[i].op->Reads(static_cast<int>(k), training())) continue;
      wanted[nodes[i].inputs[k]] = true;
      consumers_[nodes[i].inputs[k]].push_back(i);
    }
  }
  std::reverse(nodes_.begin(), nodes_.end());
  for (std::vector<int>& consumers : consumers_) std::reverse(consumers.begin(), consumers.end());
}

bool Plan::wanted_outside(ValueId value) const {
  if (value == training_->prediction || value == training_->loss_per_example) return true;
  return trains() &&
         std::count(training_->pushed_values.begin(), training_->pushed_values.end(), value) > 0;
}

Shape Plan::shape(ValueId value) const {
  Shape shape = graph().value(value).shape;
  std::replace(shape.begin(), shape.end(), kBatch, examples_);
  return shape;
}

}  // namespace shoal
