#include "common/model/keras/layer_call.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/model/keras/layer_table.h"
#include "common/model/keras/options/dtype_config.h"
#include "common/model/name_hash.h"
#include "common/model/ops/add.h"
#include "common/model/ops/rescale.h"
#include "common/model/ops/reshape.h"

namespace shoal {

uint64_t LayerCall::RandomSeed(int64_t seed) const {
  return HashName(absl::StrCat(path(), "/", seed, "/", layer_->calls));
}

absl::Status LayerCall::ExpectFloats() const {
  if (!graph_->graph.value(inputs_[0]).whole_numbers.has_value()) return absl::OkStatus();
  return layer_->json.Unimplemented(absl::StrCat(
      "layer \"", layer_->name, "\" (", layer_->type->class_name,
      ") computes in integers in Keras where the model's input is of such a dtype, and "
      "rounds; Shoal computes in float32: give the input the dtype \"float32\", or put "
      "a Rescaling layer before this one"));
}

absl::Status LayerCall::ExpectNoOverflow(const std::vector<ValueId>& values) const {
  // Keras joins the first two in a dtype that holds both, then the others one by one.
  for (size_t i = 0; i < std::min<size_t>(values.size(), 2); ++i) {
    const std::optional<WholeNumbers>& numbers = graph_->graph.value(values[i]).whole_numbers;
    if (!numbers.has_value() || HaveRoom(*numbers)) return absl::OkStatus();
  }
  return layer_->json.Unimplemented(absl::StrCat(
      "layer \"", layer_->name, "\" (", layer_->type->class_name,
      ") computes in Keras in the integers that the model's input is of, and wraps around where "
      "they end (in uint8, 200 + 100 is 44); Shoal computes in float32: give the input the dtype "
      "\"float32\", or put a Rescaling layer before this one, Rescaling(1.0) for the same "
      "numbers"));
}

absl::Status LayerCall::ExpectImages() const {
  if (input_shape().size() == 4) return absl::OkStatus();
  return Invalid(absl::StrCat("takes images of shape (batch, height, width, channels), got ",
                              ShapeToString(input_shape())));
}

absl::Status LayerCall::ExpectSequences() const {
  if (input_shape().size() == 3) return absl::OkStatus();
  return Invalid(absl::StrCat("takes sequences of shape (batch, steps, channels), got ",
                              ShapeToString(input_shape())));
}

absl::StatusOr<ValueId> LayerCall::InputImages(int rank) {
  SHOAL_RETURN_IF_ERROR(rank == 2 ? ExpectImages() : ExpectSequences());
  if (rank == 2) return inputs_[0];
  return Reshape(inputs_[0], {kBatch, 1, input_shape()[1], input_shape()[2]});
}

absl::StatusOr<ValueId> LayerCall::FromImages(int rank, ValueId images) {
  if (rank == 2) return images;
  const Shape row = shape(images);
  return Reshape(images, {kBatch, row[2], row[3]});
}

absl::StatusOr<int> LayerCall::InnerAxis(const AxisOption& option) const {
  const int64_t axis = option.axis;
  const int64_t rank = static_cast<int64_t>(input_shape().size());
  const int64_t from_front = axis < 0 ? axis + rank : axis;
  if (from_front > 0 && from_front < rank) return static_cast<int>(from_front);
  return option.json.Invalid(absl::StrCat(
      axis, " is no axis behind the batch of an input of shape ", ShapeToString(input_shape())));
}

absl::Status LayerCall::ExpectLastAxis(const AxisOption& option, const char* what) const {
  const int64_t last = static_cast<int64_t>(input_shape().size()) - 1;
  if (last > 0 && (option.axis == -1 || option.axis == last)) return absl::OkStatus();
  return option.json.Unimplemented(
      absl::StrCat("Shoal has ", what, " along the last axis only; use -1 instead of ", option.axis,
                   " for an input of shape ", ShapeToString(input_shape())));
}

absl::StatusOr<ValueId> LayerCall::AddVariable(const VariableOptions& options, Shape shape) {
  Graph& graph = graph_->graph;
  if (const auto known = layer_->variables.find(options.name); known != layer_->variables.end()) {
    const Shape& first = graph.value(known->second).shape;
    if (shape == first) return known->second;
    return Invalid(absl::StrCat("is shared, but its call on an input of shape ",
                                ShapeToString(input_shape()), " needs a ", options.name,
                                " of shape ", ShapeToString(shape),
                                " and its first call made one of shape ", ShapeToString(first)));
  }
  if (const absl::Status status = CheckElementCount(shape); !status.ok()) {
    return Invalid(
        absl::StrCat("its ", options.name, " is too large: ", std::string(status.message())));
  }
  SHOAL_RETURN_IF_ERROR(CheckShape(options.initializer, shape));
  SHOAL_RETURN_IF_ERROR(CheckShape(options.regularizer, shape));
  std::string name = absl::StrCat(layer_->path, "/", options.name);
  if (!graph_->variable_names.insert(name).second) {
    return layer_->json["config"]["name"].Invalid(
        absl::StrCat("the variable \"", name,
                     "\" is there already: that of a layer whose name and those of the "
                     "models around it read the same; rename one"));
  }
  const bool frozen =
      !layer_->trainable || (options.rule == UpdateRule::kOptimizer && !layer_->optimized);
  const ValueId value = graph.AddVariable({.name = std::move(name),
                                           .shape = std::move(shape),
                                           .rule = frozen ? UpdateRule::kFrozen : options.rule,
                                           .momentum = options.momentum,
                                           .initializer = options.initializer.initializer,
                                           .regularizer = options.regularizer.regularizer});
  layer_->variables[options.name] = value;
  return value;
}

// At each call with sample s, Keras updates m to p m + (1 - p) s. The n calls of a step together
// give p^n m + (1 - p^n) t. Here t is the mean of their samples with the weights p^(n - 1), ..., p,
// 1.
absl::Status LayerCall::SetSample(const VariableOptions& options, ValueId average, ValueId sample) {
  if (!trainable()) return absl::OkStatus();
  Graph& graph = graph_->graph;
  const ValueId before = graph.samples()[graph.value(average).variable];
  if (before == kNoValue) {
    graph.SetSample(average, sample);
    return absl::OkStatus();
  }
  double weight_before = 0, momentum = options.momentum;
  for (int call = 0; call < layer_->calls; ++call) {
    weight_before = options.momentum * weight_before + options.momentum;
    momentum *= options.momentum;
  }
  auto share_before = std::make_shared<RescaleOp>(), share = std::make_shared<RescaleOp>();
  share_before->scale = {weight_before / (weight_before + 1)};
  share->scale = {1 / (weight_before + 1)};
  SHOAL_ASSIGN_OR_RETURN(const ValueId old_part, Add(std::move(share_before), {before}));
  SHOAL_ASSIGN_OR_RETURN(const ValueId new_part, Add(std::move(share), {sample}));
  SHOAL_ASSIGN_OR_RETURN(const ValueId mean, Add(std::make_shared<AddOp>(), {old_part, new_part}));
  graph.ReplaceSample(average, mean, momentum);
  return absl::OkStatus();
}

absl::StatusOr<ValueId> LayerCall::AddKernel(int rank, const VariableOptions& options,
                                             const Shape& shape) {
  SHOAL_ASSIGN_OR_RETURN(const ValueId kernel,
                         AddVariable(options, Shape(shape.begin() + (2 - rank), shape.end())));
  return Reshape(kernel, shape);
}

absl::StatusOr<ValueId> LayerCall::Add(std::shared_ptr<const Op> op, std::vector<ValueId> inputs) {
  SHOAL_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                         AddNode(std::move(op), std::move(inputs)));
  SHOAL_CHECK(outputs.size() == 1, "layer ", layer_->path, " has ", outputs.size());
  return outputs[0];
}

absl::StatusOr<std::vector<ValueId>> LayerCall::AddNode(std::shared_ptr<const Op> op,
                                                        std::vector<ValueId> inputs) {
  absl::StatusOr<std::vector<ValueId>> outputs =
      graph_->graph.AddNode(std::move(op), std::move(inputs), layer_->path,
                            /*value_name=*/"", layer_->compute_dtype);
  if (outputs.ok()) return outputs;
  return absl::Status(outputs.status().code(),
                      absl::StrCat(layer_->json.path(), ": ", outputs.status().message()));
}

absl::StatusOr<ValueId> LayerCall::Activate(const std::shared_ptr<const Op>& activation,
                                            ValueId x) {
  if (activation == nullptr) return x;
  return Add(activation, {x});
}

absl::StatusOr<ValueId> LayerCall::Reshape(ValueId x, Shape new_shape) {
  if (shape(x) == new_shape) return x;
  auto op = std::make_shared<ReshapeOp>();
  op->shape = std::move(new_shape);
  return Add(std::move(op), {x});
}

absl::Status LayerCall::Invalid(const std::string& message) const {
  return layer_->json.Invalid(
      absl::StrCat("layer \"", layer_->name, "\" (", layer_->type->class_name, ") ", message));
}

}  // namespace shoal
