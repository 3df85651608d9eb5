#include "common/model/training/training_graph.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/model/graph.h"
#include "common/model/ops/add.h"
#include "common/model/ops/loss.h"
#include "common/model/ops/reduce.h"
#include "common/model/regularizer.h"
#include "common/model/training/expression.h"
#include "common/model/training/penalty.h"

namespace shoal {
namespace {

// Walks a graph's nodes backwards. Appends gradients for all values that depend on a variable that
// the optimizer updates.
class ReversePass {
 public:
  // `loss_scale` is TrainingGraph::loss_scale.
  ReversePass(Graph* graph, ValueId loss_scale)
      : graph_(graph),
        loss_scale_(loss_scale),
        node_count_(static_cast<int>(graph->nodes().size())),
        wanted_(graph->values().size(), false),
        first_user_(graph->values().size(), -1),
        contributions_(graph->values().size()),
        gradients_(graph->values().size(), kNoValue) {
    for (size_t v = 0; v < graph->variables().size(); ++v) {
      wanted_[graph->variable_values()[v]] = graph->variables()[v].rule == UpdateRule::kOptimizer;
    }
    for (int i = node_count_ - 1; i >= 0; --i) {
      for (const ValueId input : graph->nodes()[i].inputs) first_user_[input] = i;
    }
    for (const Node& node : graph->nodes()) {
      for (const ValueId input : node.inputs) {
        if (!wanted_[input]) continue;
        for (const ValueId output : node.outputs) wanted_[output] = true;
      }
    }
  }

  // Starts from the mean of `loss` over the examples.
  absl::Status Run(ValueId loss) {
    while (node_count_ > 0 && graph_->nodes()[node_count_ - 1].outputs[0] != loss) --node_count_;
    if (node_count_ == 0)
      return absl::InvalidArgumentError("the loss depends on no value of the model");
    const Node last = graph_->nodes()[node_count_ - 1];
    if (dynamic_cast<const LossOp*>(last.op.get()) == nullptr) {
      SHOAL_ASSIGN_OR_RETURN(gradients_[loss],
                             graph_->Add(std::make_shared<MeanGradientOp>(), {loss}, last.layer,
                                         "gradient of the loss"));
      SHOAL_RETURN_IF_ERROR(Scale(&gradients_[loss], last.layer));
    }
    for (int i = node_count_ - 1; i >= 0; --i) SHOAL_RETURN_IF_ERROR(Visit(i));
    // A variable that no node reads may still have a penalty.
    for (const ValueId value : std::vector<ValueId>(graph_->variable_values())) {
      if (first_user_[value] < 0) SHOAL_RETURN_IF_ERROR(Complete(value, ""));
    }
    return absl::OkStatus();
  }

  ValueId gradient(ValueId value) const { return gradients_[value]; }

 private:
  absl::Status Visit(int index) {
    const Node node =
        graph_->nodes()[index];  // a copy: the graph's own move when nodes are appended
    std::vector<ValueId> output_gradients;
    // A LossOp at the end of the forward pass computes the gradient of the mean itself.
    const bool begins = index == node_count_ - 1 && gradients_[node.outputs[0]] == kNoValue;
    bool reached = begins;
    for (const ValueId output : node.outputs) {
      output_gradients.push_back(gradients_[output]);
      reached = reached || gradients_[output] != kNoValue;
    }
    if (reached) {
      std::vector<bool> input_wanted;
      for (const ValueId input : node.inputs) input_wanted.push_back(wanted_[input]);
      GradientBuilder builder(graph_, &node, std::move(output_gradients), std::move(input_wanted));
      SHOAL_RETURN_IF_ERROR(node.op->Gradient(builder));
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        ValueId gradient = builder.input_gradients()[i];
        if (gradient == kNoValue) continue;
        if (begins) SHOAL_RETURN_IF_ERROR(Scale(&gradient, node.layer));
        contributions_[node.inputs[i]].push_back(gradient);
      }
    }
    // Nodes come after their inputs, so the value's first user is visited last. Once it has added
    // its part, the value's gradient is complete.
    for (const ValueId input : node.inputs) {
      if (first_user_[input] == index) SHOAL_RETURN_IF_ERROR(Complete(input, node.layer));
    }
    return absl::OkStatus();
  }

  // Multiplies the gradient by the loss scale, if there is one.
  absl::Status Scale(ValueId* gradient, const std::string& layer) {
    if (loss_scale_ == kNoValue) return absl::OkStatus();
    FormulaContext context(graph_, layer);
    *gradient = (Expression{&context, *gradient} * Expression{&context, loss_scale_}).id;
    return context.status();
  }

  // Adds up the gradient's parts from all users of `value` and from its regularizer.
  absl::Status Complete(ValueId value, const std::string& layer) {
    std::vector<ValueId> parts = std::exchange(contributions_[value], {});
    if (const int variable = graph_->value(value).variable; variable >= 0 && wanted_[value]) {
      const Regularizer regularizer = graph_->variables()[variable].regularizer;
      if (regularizer.used()) {
        FormulaContext context(graph_, layer);
        parts.push_back(PenaltyGradient(regularizer, {&context, value}).id);
        SHOAL_RETURN_IF_ERROR(context.status());
        SHOAL_RETURN_IF_ERROR(Scale(&parts.back(), layer));
      }
    }
    if (parts.empty()) return absl::OkStatus();
    gradients_[value] = parts[0];
    if (parts.size() == 1) return absl::OkStatus();
    // Sums in the layer's compute dtype, because no part is more exact than this. The sum for a
    // variable is in float32.
    const bool of_variable = graph_->value(value).variable >= 0;
    const ComputeDtype type =
        of_variable ? ComputeDtype::kFloat32 : graph_->nodes()[first_user_[value]].compute_dtype;
    SHOAL_ASSIGN_OR_RETURN(
        gradients_[value],
        graph_->Add(std::make_shared<AddOp>(), std::move(parts), layer,
                    absl::StrCat("gradient of ", graph_->value(value).name), type));
    return absl::OkStatus();
  }

  Graph* const graph_;  // outlives this
  const ValueId loss_scale_;
  int node_count_;  // nodes that the loss may depend on
  // By value of the forward pass:
  std::vector<bool> wanted_;     // whether it depends on a variable that the optimizer updates
  std::vector<int> first_user_;  // the first node that reads it; -1: none
  std::vector<std::vector<ValueId>> contributions_;
  std::vector<ValueId> gradients_;
};

// The loss of each example plus the penalties on outputs of layers.
absl::StatusOr<ValueId> AddActivityPenalties(Graph* graph, ValueId loss) {
  if (graph->activity_penalties().empty()) return loss;
  FormulaContext context(graph, "regularizer");
  std::vector<ValueId> terms = {loss};
  for (const auto& [value, regularizer] : graph->activity_penalties())
    terms.push_back(PenaltyOfExamples(regularizer, {&context, value}).id);
  const ValueId total = context.Add(std::make_shared<AddOp>(), std::move(terms));
  SHOAL_RETURN_IF_ERROR(context.status());
  return total;
}

// The loss of each example plus the penalties on variables.
absl::StatusOr<ValueId> AddPenalties(Graph* graph, ValueId loss) {
  FormulaContext context(graph, "regularizer");
  std::vector<ValueId> penalties;
  for (size_t v = 0; v < graph->variables().size(); ++v) {
    const Variable& variable = graph->variables()[v];
    if (variable.rule != UpdateRule::kOptimizer || !variable.regularizer.used()) continue;
    const Expression values = {&context, graph->variable_values()[v]};
    penalties.push_back(Penalty(variable.regularizer, values).id);
  }
  if (penalties.empty()) return loss;
  Expression penalty = {&context, penalties[0]};
  if (penalties.size() > 1) penalty.id = context.Add(std::make_shared<AddOp>(), penalties);
  const Expression total = Expression{&context, loss} + penalty;
  SHOAL_RETURN_IF_ERROR(context.status());
  return total.id;
}

}  // namespace

absl::StatusOr<TrainingGraph> BuildTrainingGraph(const Graph& model, const Loss& loss,
                                                 const TrainingGraphOptions& options) {
  if (model.outputs().size() != 1) {
    return absl::UnimplementedError(
        absl::StrCat("a model with ", model.outputs().size(),
                     " outputs cannot be trained here; it must have one"));
  }
  TrainingGraph result;
  Graph& graph = result.graph;
  graph = model;
  result.forward_nodes = static_cast<int>(model.nodes().size());
  result.prediction = model.outputs()[0];

  SHOAL_ASSIGN_OR_RETURN(Shape target_shape,
                         loss.TargetShape(graph.value(result.prediction).shape));
  result.target = graph.AddInput("target", std::move(target_shape));
  SHOAL_ASSIGN_OR_RETURN(ValueId loss_of_outputs,
                         loss.AppendTo(&graph, result.prediction, result.target));
  if (options.weighted) {
    result.weights = graph.AddInput("weights", graph.value(loss_of_outputs).shape);
    FormulaContext context(&graph, "loss");
    loss_of_outputs =
        (Expression{&context, loss_of_outputs} * Expression{&context, result.weights}).id;
    SHOAL_RETURN_IF_ERROR(context.status());
  }
  if (options.scales_loss) result.loss_scale = graph.AddInput("loss scale", {1});
  SHOAL_ASSIGN_OR_RETURN(loss_of_outputs, AddActivityPenalties(&graph, loss_of_outputs));
  // The penalties on variables have formulas for their gradients. The reverse pass therefore does
  // not walk the nodes appended from here on.
  ReversePass reverse(&graph, result.loss_scale);
  SHOAL_ASSIGN_OR_RETURN(result.loss_per_example, AddPenalties(&graph, loss_of_outputs));
  result.loss_nodes_end = static_cast<int>(graph.nodes().size());

  SHOAL_RETURN_IF_ERROR(reverse.Run(loss_of_outputs));
  for (size_t v = 0; v < graph.variables().size(); ++v) {
    const bool averages = graph.variables()[v].rule == UpdateRule::kMovingAverage;
    SHOAL_CHECK(!averages || graph.samples()[v] != kNoValue, graph.variables()[v].name);
    result.pushed_values.push_back(averages ? graph.samples()[v]
                                            : reverse.gradient(graph.variable_values()[v]));
  }
  return result;
}

}  // namespace shoal
