#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "common/model/keras/json_node.h"
#include "common/model/keras/layer.h"

namespace shoal {

// What a layer's reader (keras/layers/) sees of one call of the layer: its options, its inputs, and
// the graph to which it appends its ops. Lives for the call.
class LayerBuilder {
 public:
  // `layer` and `graph` outlive this.
  LayerBuilder(Layer* layer, std::vector<ValueId> inputs, Graph* graph);

  const std::string& name() const { return layer_->name; }
  const ModelTraits& traits() const { return layer_->traits; }
  // Which call of a shared layer this is.
  int call() const { return layer_->calls; }

  // An option of the layer's config; a null node where there is none. Options never asked for must
  // be null or absent.
  JsonNode Option(const std::string& key) { return config_[key]; }
  ConfigReader& config() { return config_; }

  const std::vector<ValueId>& inputs() const { return inputs_; }
  const Shape& input_shape(int i = 0) const { return graph_->value(inputs_[i]).shape; }
  // That the input has the axes (batch, height, width, channels).
  absl::Status ExpectImages() const;
  // That data_format is absent or channels_last, the only layout there is.
  absl::Status ExpectChannelsLast();

  // The model input of an InputLayer.
  ValueId AddInput(Shape shape) { return graph_->AddInput(layer_->name, std::move(shape)); }
  // The layer's variable "LAYER/NAME", whose initializer stands under `initializer_key`; that of
  // the first call where the layer is shared.
  absl::StatusOr<ValueId> AddVariable(const std::string& name, Shape shape,
                                      const std::string& initializer_key,
                                      const std::string& default_initializer);
  // Appends an op to the graph; its output.
  absl::StatusOr<ValueId> Add(std::shared_ptr<const Op> op, std::vector<ValueId> inputs);

  // kInvalidArgument, with path and layer before the message.
  absl::Status Invalid(const std::string& message) const;

 private:
  Layer* const layer_;
  const std::vector<ValueId> inputs_;
  Graph* const graph_;
  ConfigReader config_;
};

}  // namespace shoal
