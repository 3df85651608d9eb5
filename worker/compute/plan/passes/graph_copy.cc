#include "worker/compute/plan/passes/graph_copy.h"

#include <utility>

#include "common/base/status_macros.h"

namespace shoal {

GraphCopy::GraphCopy(const Graph& model)
    : model_(model), replacement_(model.values().size(), kNoValue) {
  for (const ValueId input : model.inputs()) {
    const Value& value = model.value(input);
    replacement_[input] = copy_.AddInput(value.name, value.shape, value.whole_numbers);
  }
  for (size_t v = 0; v < model.variables().size(); ++v) {
    replacement_[model.variable_values()[v]] = copy_.AddVariable(model.variables()[v]);
  }
}

absl::Status GraphCopy::Add(const Node& node, std::shared_ptr<const Op> op,
                            const std::vector<ValueId>& inputs) {
  std::vector<ValueId> copied;
  for (const ValueId input : inputs) copied.push_back(replacement_[input]);
  SHOAL_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                         copy_.AddNode(std::move(op), std::move(copied), node.layer,
                                       /*value_name=*/"", node.compute_dtype));
  for (size_t i = 0; i < outputs.size(); ++i) replacement_[node.outputs[i]] = outputs[i];
  return absl::OkStatus();
}

Graph GraphCopy::Finish() && {
  for (size_t v = 0; v < model_.variables().size(); ++v) {
    if (model_.samples()[v] == kNoValue) continue;
    copy_.SetSample(replacement_[model_.variable_values()[v]], replacement_[model_.samples()[v]]);
  }
  for (const Graph::ActivityPenalty& penalty : model_.activity_penalties())
    copy_.AddActivityPenalty(replacement_[penalty.value], penalty.regularizer);
  std::vector<ValueId> outputs;
  for (const ValueId output : model_.outputs()) outputs.push_back(replacement_[output]);
  copy_.SetOutputs(std::move(outputs));
  return std::move(copy_);
}

}  // namespace shoal
