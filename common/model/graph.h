#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/shape.h"
#include "common/model/compute_dtype.h"
#include "common/model/op.h"
#include "common/model/variable.h"

namespace shoal {

// Index of a value in Graph::values().
using ValueId = int;
inline constexpr ValueId kNoValue = -1;

// The range of whole numbers that an input of a model accepts, by its dtype.
struct WholeNumbers {
  int64_t min = 0;
  int64_t max = 0;
};

struct Value {
  enum class Kind {
    kInput,     // a batch of examples, or the target
    kVariable,  // a variable of the model; `variable` is its index
    kNode,      // output of a node
  };
  Kind kind;
  std::string name;  // for messages: "conv2d/kernel", "conv2d", "gradient of conv2d"
  Shape shape;
  int variable = -1;
  // Set for an input with an integer dtype, and for values that ops only move or choose from it.
  // Keras keeps these as integers until a layer computes with them.
  std::optional<WholeNumbers> whole_numbers = {};
};

struct Node {
  std::shared_ptr<const Op> op;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::string layer;  // Keras name of the layer that it comes from
  // The type that the model asks for. A backend without this type computes in float32
  // (Backend::Supports).
  ComputeDtype compute_dtype = ComputeDtype::kFloat32;
  // Its index in the graph. A plan's node keeps the id of the graph's node whose place it has.
  int id = -1;
  // If it computes a part of a gradient: the id of the node whose gradient that is. -1: it does
  // not.
  int gradient_of = -1;
};

// Max elements of one tensor, or of one example if the batch axis leads. It is far more than a
// machine holds, and small enough that sizes in bytes do not overflow.
inline constexpr int64_t kMaxElements = int64_t{1} << 40;

// Rejects a shape with a negative extent, or with more than kMaxElements elements. kBatch is
// allowed and counts as 1.
absl::Status CheckElementCount(const Shape& shape);

// A directed acyclic graph of ops over float32 tensors. Its nodes are in an order in which they can
// run. It is built once, then constant; thread-safe when constant. Whole numbers (inputs of an
// integer dtype, class ids as target) are also stored as float32, which is exact up to 2^24.
class Graph {
 public:
  ValueId AddInput(std::string name, Shape shape, std::optional<WholeNumbers> whole_numbers = {});
  ValueId AddVariable(Variable variable);
  // Appends a node and returns its outputs. They are named `value_name`, or after the layer if that
  // is empty. Returns the errors of InferShapes, prefixed with the layer, and of CheckElementCount.
  absl::StatusOr<std::vector<ValueId>> AddNode(std::shared_ptr<const Op> op,
                                               std::vector<ValueId> inputs,
                                               const std::string& layer,
                                               const std::string& value_name = "",
                                               ComputeDtype compute_dtype = ComputeDtype::kFloat32);
  // Appends a node that computes a part of the gradient of `forward`, which is a node of this graph
  // or a copy of one. It gets that node's layer and compute dtype.
  absl::StatusOr<std::vector<ValueId>> AddGradientNode(const Node& forward,
                                                       std::shared_ptr<const Op> op,
                                                       std::vector<ValueId> inputs);
  // The same as AddNode for an op with one output.
  absl::StatusOr<ValueId> Add(std::shared_ptr<const Op> op, std::vector<ValueId> inputs,
                              const std::string& layer, const std::string& value_name = "",
                              ComputeDtype compute_dtype = ComputeDtype::kFloat32);

  // Makes each training step push `sample` for the moving average `variable`. The sample has the
  // variable's shape and is computed from the step's batch. Call this exactly once for each moving
  // average.
  void SetSample(ValueId variable, ValueId sample);
  // Replaces the sample of a moving average that has one. The new `sample` combines several
  // samples, and `momentum` is their combined momentum.
  void ReplaceSample(ValueId variable, ValueId sample, double momentum);

  // Adds the regularizer's penalty on `value` to the loss, for each example: Keras's
  // activity_regularizer. Several penalties on one value add up.
  void AddActivityPenalty(ValueId value, const Regularizer& regularizer) {
    activity_penalties_.push_back({value, regularizer});
  }

  // Sets the compute dtype of all nodes, whatever the layers' policies are.
  void SetComputeDtype(ComputeDtype compute_dtype) {
    for (Node& node : nodes_) node.compute_dtype = compute_dtype;
  }

  void SetOutputs(std::vector<ValueId> outputs) { outputs_ = std::move(outputs); }

  const std::vector<Value>& values() const { return values_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Variable>& variables() const { return variables_; }
  const std::vector<ValueId>& variable_values() const { return variable_values_; }
  // By variable; kNoValue if it is not a moving average.
  const std::vector<ValueId>& samples() const { return samples_; }
  struct ActivityPenalty {
    ValueId value;
    Regularizer regularizer;
  };
  const std::vector<ActivityPenalty>& activity_penalties() const { return activity_penalties_; }
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  const Value& value(ValueId id) const { return values_[id]; }

 private:
  // The range that covers all of `values`; empty if any of them has no range of whole numbers.
  std::optional<WholeNumbers> Joined(const std::vector<ValueId>& values) const;

  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<Variable> variables_;       // in the order of Keras's model.weights
  std::vector<ValueId> variable_values_;  // value of each variable
  std::vector<ValueId> samples_;          // sample of each variable
  std::vector<ActivityPenalty> activity_penalties_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
};

// Op::Gradient's view of its node: the inputs, the outputs and the gradients of the outputs.
// Op::Gradient stores the gradients of the inputs here.
class GradientBuilder {
 public:
  GradientBuilder(Graph* graph, const Node* node, std::vector<ValueId> output_gradients,
                  std::vector<bool> input_wanted);

  ValueId input(int i) const { return node_->inputs[i]; }
  int input_count() const { return static_cast<int>(node_->inputs.size()); }
  ValueId output(int i) const { return node_->outputs[i]; }
  ValueId output_gradient(int i) const { return output_gradients_[i]; }
  const Shape& input_shape(int i) const;
  // False for inputs whose gradient is not needed (the images). Skip the work for these.
  bool wanted(int i) const { return input_wanted_[i]; }

  // Appends a gradient node (Graph::AddGradientNode) and returns its outputs.
  absl::StatusOr<std::vector<ValueId>> AddNode(std::shared_ptr<const Op> op,
                                               std::vector<ValueId> inputs);
  // The same for an op with one output.
  absl::StatusOr<ValueId> Add(std::shared_ptr<const Op> op, std::vector<ValueId> inputs);
  // Appends `op` on `inputs` as the gradient of input `i`. Does nothing if that gradient is not
  // wanted.
  absl::Status AddInputGradient(int i, std::shared_ptr<const Op> op, std::vector<ValueId> inputs);
  // Sets the gradient of input `i`. It may be an existing value: Add passes its output's gradient
  // through.
  void SetInputGradient(int i, ValueId gradient) { input_gradients_[i] = gradient; }
  const std::vector<ValueId>& input_gradients() const { return input_gradients_; }

 private:
  Graph* const graph_;      // outlives this
  const Node* const node_;  // outlives this; not one of graph_'s own, which move as it grows
  const std::vector<ValueId> output_gradients_;
  const std::vector<bool> input_wanted_;
  std::vector<ValueId> input_gradients_;
};

}  // namespace shoal
