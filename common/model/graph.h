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

// Which whole numbers an input of a model takes, by its dtype.
struct WholeNumbers {
  int64_t least = 0;
  int64_t most = 0;
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
  // Of an input of a dtype of whole numbers, and of what is those numbers moved or chosen: in Keras
  // they are integers until a layer computes with them.
  std::optional<WholeNumbers> whole_numbers = {};
};

struct Node {
  std::shared_ptr<const Op> op;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::string layer;  // Keras name of the layer it came from
  // What the model says that it is computed in; a backend that lacks it computes in float32
  // (Backend::compute_dtypes).
  ComputeDtype compute_dtype = ComputeDtype::kFloat32;
};

// The most elements that one tensor may have (an example's, where the batch leads): far beyond what
// a machine holds, and small enough that sizes in bytes do not overflow.
inline constexpr int64_t kMaxElements = int64_t{1} << 40;

// An error when an extent is negative (kBatch is not) or their product is above kMaxElements.
absl::Status CheckElementCount(const Shape& shape);

// A directed acyclic graph of ops over float32 tensors, nodes in an order in which they can run.
// Built once, then constant; thread-safe when constant. Whole numbers (inputs of such a dtype,
// class ids as target) are held as float32 too: exact up to 2^24.
class Graph {
 public:
  ValueId AddInput(std::string name, Shape shape, std::optional<WholeNumbers> whole_numbers = {});
  ValueId AddVariable(Variable variable);
  // Appends a node and returns its outputs, which are named `value_name`, or after the layer when
  // that is empty. Errors are InferShapes's, prefixed with the layer, and CheckElementCount's.
  absl::StatusOr<std::vector<ValueId>> AddNode(std::shared_ptr<const Op> op,
                                               std::vector<ValueId> inputs,
                                               const std::string& layer,
                                               const std::string& value_name = "",
                                               ComputeDtype compute_dtype = ComputeDtype::kFloat32);
  // The same for an op with one output.
  absl::StatusOr<ValueId> Add(std::shared_ptr<const Op> op, std::vector<ValueId> inputs,
                              const std::string& layer, const std::string& value_name = "",
                              ComputeDtype compute_dtype = ComputeDtype::kFloat32);

  // In training, each step pushes `sample` for the moving average whose value `variable` is: a
  // value of the same shape, computed of its batch. Once for each moving average, which all have
  // one.
  void SetSample(ValueId variable, ValueId sample);
  // The same again for one that has a sample, in whose place comes one of several samples, with the
  // momentum that those have together.
  void ReplaceSample(ValueId variable, ValueId sample, double momentum);

  // What the regularizer adds to the loss for `value`, a value for each example: Keras's
  // activity_regularizer. Several of one value add up.
  void AddActivityPenalty(ValueId value, const Regularizer& regularizer) {
    activity_penalties_.push_back({value, regularizer});
  }

  void SetOutputs(std::vector<ValueId> outputs) { outputs_ = std::move(outputs); }

  const std::vector<Value>& values() const { return values_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Variable>& variables() const { return variables_; }
  const std::vector<ValueId>& variable_values() const { return variable_values_; }
  // By variable; kNoValue where it is no moving average.
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
  // What all of `values` are together; nothing where one is not of whole numbers.
  std::optional<WholeNumbers> Joined(const std::vector<ValueId>& values) const;

  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<Variable> variables_;       // in the order of Keras's model.weights
  std::vector<ValueId> variable_values_;  // value of each variable
  std::vector<ValueId> samples_;          // of each variable
  std::vector<ActivityPenalty> activity_penalties_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
};

// What Op::Gradient sees of its node: inputs, outputs, the gradients of the outputs; and where it
// leaves the gradients of the inputs.
class GradientBuilder {
 public:
  GradientBuilder(Graph* graph, const Node* node, std::vector<ValueId> output_gradients,
                  std::vector<bool> input_wanted);

  ValueId input(int i) const { return node_->inputs[i]; }
  int input_count() const { return static_cast<int>(node_->inputs.size()); }
  ValueId output(int i) const { return node_->outputs[i]; }
  ValueId output_gradient(int i) const { return output_gradients_[i]; }
  const Shape& input_shape(int i) const;
  // False for inputs whose gradient nobody needs (the images): skip the work.
  bool wanted(int i) const { return input_wanted_[i]; }

  // Appends a gradient node, of the precision of the node, and returns its outputs.
  absl::StatusOr<std::vector<ValueId>> AddNode(std::shared_ptr<const Op> op,
                                               std::vector<ValueId> inputs);
  // The same for an op with one output.
  absl::StatusOr<ValueId> Add(std::shared_ptr<const Op> op, std::vector<ValueId> inputs);
  // Appends `op` on `inputs` as the gradient of input `i`, if that is wanted.
  absl::Status AddInputGradient(int i, std::shared_ptr<const Op> op, std::vector<ValueId> inputs);
  // Sets the gradient of input `i`; it may be an existing value (Add passes its own through).
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
