#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "common/model/keras/layer.h"
#include "common/model/keras/layer_options.h"

namespace shoal {

// One call of a layer: its inputs, and the graph to which it appends its ops. Lives for the call.
class LayerCall {
 public:
  // `layer` and `graph` outlive this.
  LayerCall(Layer* layer, std::vector<ValueId> inputs, GraphInProgress* graph)
      : layer_(layer), inputs_(std::move(inputs)), graph_(graph) {}

  // The layer's name after those of the nested models around it.
  const std::string& path() const { return layer_->path; }
  // For the random numbers of this call, with the option "seed": each call of a shared layer draws
  // its own.
  uint64_t RandomSeed(int64_t seed) const;

  const std::vector<ValueId>& inputs() const { return inputs_; }
  const Shape& shape(ValueId value) const { return graph_->graph.value(value).shape; }
  const Shape& input_shape(int i = 0) const { return shape(inputs_[i]); }
  // What the layer computes in.
  ComputeDtype compute_dtype() const { return layer_->compute_dtype; }
  // That the input is not one of whole numbers as they were read: of those Keras computes this
  // layer in integers, which it rounds or cuts off.
  absl::Status ExpectFloats() const;
  // That what Keras computes of these values, joined from the first on, is not computed in integers
  // of a dtype in which sums, differences and products wrap around; int32 and int64 hold them.
  absl::Status ExpectNoOverflow(const std::vector<ValueId>& values) const;
  // That the input has the axes (batch, height, width, channels).
  absl::Status ExpectImages() const;
  // That the input has the axes (batch, steps, channels).
  absl::Status ExpectSequences() const;
  // The input as images: itself where `rank` is 2, sequences as images of one row where it is 1.
  absl::StatusOr<ValueId> InputImages(int rank);
  // The output of a layer of that rank from images.
  absl::StatusOr<ValueId> FromImages(int rank, ValueId images);

  // The axis of the input that an option names; not that of the batch.
  absl::StatusOr<int> InnerAxis(const AxisOption& option) const;
  // That an option names the last axis, the only one along which Shoal does `what`.
  absl::Status ExpectLastAxis(const AxisOption& option, const char* what) const;

  // The layer's variable of these options; that of the first call where the layer is shared.
  absl::StatusOr<ValueId> AddVariable(const VariableOptions& options, Shape shape);
  // The same for the kernel of a convolution, of that shape over images. Over sequences (`rank` 1)
  // the variable lacks the first axis.
  absl::StatusOr<ValueId> AddKernel(int rank, const VariableOptions& options, const Shape& shape);
  // False: all variables of the layer are frozen, and it computes as in inference.
  bool trainable() const { return layer_->trainable; }
  // That this call takes `sample` for the variable of these options, whose rule is kMovingAverage
  // (see Graph::SetSample); of a layer that is not trainable it is not asked for.
  absl::Status SetSample(const VariableOptions& options, ValueId average, ValueId sample);
  // Appends an op to the graph; its output. Without inputs: on those of the call.
  absl::StatusOr<ValueId> Add(std::shared_ptr<const Op> op, std::vector<ValueId> inputs);
  absl::StatusOr<ValueId> Add(std::shared_ptr<const Op> op) { return Add(std::move(op), inputs_); }
  // The same for an op of several outputs.
  absl::StatusOr<std::vector<ValueId>> AddNode(std::shared_ptr<const Op> op,
                                               std::vector<ValueId> inputs);
  // The same for an activation, which may be null: `x` itself then.
  absl::StatusOr<ValueId> Activate(const std::shared_ptr<const Op>& activation, ValueId x);
  // `x` in another shape; `x` itself where it has that.
  absl::StatusOr<ValueId> Reshape(ValueId x, Shape shape);

  GraphInProgress* graph() { return graph_; }

  // kInvalidArgument, with path and layer before the message.
  absl::Status Invalid(const std::string& message) const;

 private:
  Layer* const layer_;
  const std::vector<ValueId> inputs_;
  GraphInProgress* const graph_;
};

}  // namespace shoal
