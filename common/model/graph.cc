#include "common/model/graph.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace shoal {

bool Op::Reads(int, bool) const { return true; }

absl::Status Op::Gradient(GradientBuilder&) const {
  return absl::UnimplementedError(absl::StrCat(type(), " has no gradient"));
}

ValueId Graph::AddInput(std::string name, Shape shape, std::optional<WholeNumbers> whole_numbers) {
  const ValueId id = static_cast<ValueId>(values_.size());
  values_.push_back({.kind = Value::Kind::kInput,
                     .name = std::move(name),
                     .shape = std::move(shape),
                     .whole_numbers = whole_numbers});
  inputs_.push_back(id);
  return id;
}

ValueId Graph::AddVariable(Variable variable) {
  const ValueId id = static_cast<ValueId>(values_.size());
  const int index = static_cast<int>(variables_.size());
  values_.push_back({Value::Kind::kVariable, variable.name, variable.shape, index});
  variables_.push_back(std::move(variable));
  variable_values_.push_back(id);
  samples_.push_back(kNoValue);
  return id;
}

void Graph::SetSample(ValueId variable, ValueId sample) {
  const Value& average = values_[variable];
  SHOAL_CHECK(average.kind == Value::Kind::kVariable &&
                  variables_[average.variable].rule == UpdateRule::kMovingAverage,
              "value ", average.name);
  SHOAL_CHECK(samples_[average.variable] == kNoValue, "variable ", average.name);
  SHOAL_CHECK(values_[sample].shape == average.shape, "variable ", average.name);
  samples_[average.variable] = sample;
}

void Graph::ReplaceSample(ValueId variable, ValueId sample, double momentum) {
  const int index = values_[variable].variable;
  SHOAL_CHECK(samples_[index] != kNoValue, "variable ", values_[variable].name);
  samples_[index] = kNoValue;
  SetSample(variable, sample);
  variables_[index].momentum = momentum;
}

std::optional<WholeNumbers> Graph::Joined(const std::vector<ValueId>& values) const {
  std::optional<WholeNumbers> joined;
  for (const ValueId value : values) {
    const std::optional<WholeNumbers>& one = values_[value].whole_numbers;
    if (!one.has_value()) return std::nullopt;
    if (!joined.has_value()) joined = one;
    joined->min = std::min(joined->min, one->min);
    joined->max = std::max(joined->max, one->max);
  }
  return joined;
}

absl::StatusOr<std::vector<ValueId>> Graph::AddNode(std::shared_ptr<const Op> op,
                                                    std::vector<ValueId> inputs,
                                                    const std::string& layer,
                                                    const std::string& value_name,
                                                    ComputeDtype compute_dtype) {
  std::vector<Shape> input_shapes;
  input_shapes.reserve(inputs.size());
  for (const ValueId input : inputs) {
    SHOAL_CHECK(input >= 0 && input < static_cast<ValueId>(values_.size()), "layer ", layer);
    input_shapes.push_back(values_[input].shape);
  }
  std::optional<WholeNumbers> whole_numbers;
  if (op->KeepsWholeNumbers()) whole_numbers = Joined(inputs);
  absl::StatusOr<std::vector<Shape>> shapes = op->InferShapes(input_shapes);
  absl::Status status = shapes.status();
  for (size_t i = 0; status.ok() && i < shapes->size(); ++i) {
    status = CheckElementCount((*shapes)[i]);
  }
  if (!status.ok()) {
    return absl::Status(status.code(), absl::StrCat("layer \"", layer, "\" (", op->type(),
                                                    "): ", status.message()));
  }
  std::vector<ValueId> outputs;
  for (Shape& shape : *shapes) {
    outputs.push_back(static_cast<ValueId>(values_.size()));
    values_.push_back({.kind = Value::Kind::kNode,
                       .name = value_name.empty() ? layer : value_name,
                       .shape = std::move(shape),
                       .whole_numbers = whole_numbers});
  }
  nodes_.push_back({.op = std::move(op),
                    .inputs = std::move(inputs),
                    .outputs = outputs,
                    .layer = layer,
                    .compute_dtype = compute_dtype,
                    .id = static_cast<int>(nodes_.size())});
  return outputs;
}

absl::StatusOr<std::vector<ValueId>> Graph::AddGradientNode(const Node& forward,
                                                            std::shared_ptr<const Op> op,
                                                            std::vector<ValueId> inputs) {
  const int gradient_of = forward.id;  // appending may move the graph's nodes
  SHOAL_ASSIGN_OR_RETURN(
      std::vector<ValueId> outputs,
      AddNode(std::move(op), std::move(inputs), std::string(forward.layer),
              absl::StrCat("gradient of ", forward.layer), forward.compute_dtype));
  nodes_.back().gradient_of = gradient_of;
  return outputs;
}

absl::StatusOr<ValueId> Graph::Add(std::shared_ptr<const Op> op, std::vector<ValueId> inputs,
                                   const std::string& layer, const std::string& value_name,
                                   ComputeDtype compute_dtype) {
  SHOAL_ASSIGN_OR_RETURN(
      const std::vector<ValueId> outputs,
      AddNode(std::move(op), std::move(inputs), layer, value_name, compute_dtype));
  SHOAL_CHECK(outputs.size() == 1, "layer ", layer, " has ", outputs.size());
  return outputs[0];
}

absl::Status CheckElementCount(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) {
    if (extent == kBatch) continue;
    if (extent < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", ShapeToString(shape), " has the negative extent ", extent));
    }
    if (extent > 0 && count > kMaxElements / extent) {
      return absl::InvalidArgumentError(absl::StrCat(
          "shape ", ShapeToString(shape), " has more than 2^40 elements, the max of one tensor"));
    }
    count *= extent;
  }
  return absl::OkStatus();
}

GradientBuilder::GradientBuilder(Graph* graph, const Node* node,
                                 std::vector<ValueId> output_gradients,
                                 std::vector<bool> input_wanted)
    : graph_(graph),
      node_(node),
      output_gradients_(std::move(output_gradients)),
      input_wanted_(std::move(input_wanted)),
      input_gradients_(node->inputs.size(), kNoValue) {}

const Shape& GradientBuilder::input_shape(int i) const { return graph_->value(input(i)).shape; }

absl::StatusOr<std::vector<ValueId>> GradientBuilder::AddNode(std::shared_ptr<const Op> op,
                                                              std::vector<ValueId> inputs) {
  return graph_->AddGradientNode(*node_, std::move(op), std::move(inputs));
}

absl::StatusOr<ValueId> GradientBuilder::Add(std::shared_ptr<const Op> op,
                                             std::vector<ValueId> inputs) {
  SHOAL_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                         AddNode(std::move(op), std::move(inputs)));
  SHOAL_CHECK(outputs.size() == 1, "layer ", node_->layer, " has ", outputs.size());
  return outputs[0];
}

absl::Status GradientBuilder::AddInputGradient(int i, std::shared_ptr<const Op> op,
                                               std::vector<ValueId> inputs) {
  if (!wanted(i)) return absl::OkStatus();
  SHOAL_ASSIGN_OR_RETURN(const ValueId gradient, Add(std::move(op), std::move(inputs)));
  SetInputGradient(i, gradient);
  return absl::OkStatus();
}

}  // namespace shoal
