#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "common/model/keras/layer.h"
#include "common/model/keras/options/layer_options.h"

namespace shoal {

// One call of a layer: its inputs, and the graph to which it appends its ops. Lives for the call.
class LayerCall {
 public:
  // `layer` and `graph` outlive this.
  LayerCall(Layer* layer, std::vector<ValueId> inputs, GraphInProgress* graph)
      : layer_(layer), inputs_(std::move(inputs)), graph_(graph) {}

  // The layer's name with the names of the nested models around it.
  const std::string& path() const { return layer_->path; }
  // The seed of this call's random numbers; `seed` is the option "seed". Each call of a shared
  // layer has its own random numbers.
  uint64_t RandomSeed(int64_t seed) const;

  const std::vector<ValueId>& inputs() const { return inputs_; }
  const Shape& shape(ValueId value) const { return graph_->graph.value(value).shape; }
  const Shape& input_shape(int i = 0) const { return shape(inputs_[i]); }
  // The type that the layer computes in.
  ComputeDtype compute_dtype() const { return layer_->compute_dtype; }
  // Rejects an input of whole numbers in their original dtype. Keras computes this layer in
  // integers for them, and rounds or truncates.
  absl::Status ExpectFloats() const;
  // Rejects values that Keras joins, from the first on, in a small integer dtype. Their sums,
  // differences and products wrap around there. Accepts int32 and int64, which hold the results.
  absl::Status ExpectNoOverflow(const std::vector<ValueId>& values) const;
  // Returns an error unless the input has the axes (batch, height, width, channels).
  absl::Status ExpectImages() const;
  // Returns an error unless the input has the axes (batch, steps, channels).
  absl::Status ExpectSequences() const;
  // Returns the input as images. If `rank` is 2, it is the input itself. If it is 1, each sequence
  // becomes an image with one row.
  absl::StatusOr<ValueId> InputImages(int rank);
  // Turns images back into the output of a layer of this rank.
  absl::StatusOr<ValueId> FromImages(int rank, ValueId images);

  // Returns the axis of the input that an option names. Rejects the batch axis.
  absl::StatusOr<int> InnerAxis(const AxisOption& option) const;
  // Returns an error unless the option names the last axis. Shoal supports `what` only along this
  // axis.
  absl::Status ExpectLastAxis(const AxisOption& option, const char* what) const;

  // Returns the layer's variable with these options. All calls of a shared layer get the same
  // variable.
  absl::StatusOr<ValueId> AddVariable(const VariableOptions& options, Shape shape);
  // The same for the kernel of a convolution. `shape` is its shape for images. For sequences
  // (`rank` 1), the variable lacks the first axis.
  absl::StatusOr<ValueId> AddKernel(int rank, const VariableOptions& options, const Shape& shape);
  // If false, all variables of the layer are frozen, and it computes as in inference.
  bool trainable() const { return layer_->trainable; }
  // Sets this call's `sample` for the moving average `average`, the variable of these options (see
  // Graph::SetSample). Does nothing if the layer is not trainable.
  absl::Status SetSample(const VariableOptions& options, ValueId average, ValueId sample);
  // Appends an op to the graph and returns its output. The default inputs are those of the call.
  absl::StatusOr<ValueId> Add(std::shared_ptr<const Op> op, std::vector<ValueId> inputs);
  absl::StatusOr<ValueId> Add(std::shared_ptr<const Op> op) { return Add(std::move(op), inputs_); }
  // The same for an op with several outputs.
  absl::StatusOr<std::vector<ValueId>> AddNode(std::shared_ptr<const Op> op,
                                               std::vector<ValueId> inputs);
  // Applies an activation to `x`. Returns `x` itself if the activation is null.
  absl::StatusOr<ValueId> Activate(const std::shared_ptr<const Op>& activation, ValueId x);
  // Returns `x` in another shape, or `x` itself if it already has this shape.
  absl::StatusOr<ValueId> Reshape(ValueId x, Shape shape);

  GraphInProgress* graph() { return graph_; }

  // Returns kInvalidArgument, with the path and the layer before the message.
  absl::Status Invalid(const std::string& message) const;

 private:
  Layer* const layer_;
  const std::vector<ValueId> inputs_;
  GraphInProgress* const graph_;
};

}  // namespace shoal
