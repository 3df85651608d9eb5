#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/keras/layer.h"
#include "common/model/keras_model.h"

namespace shoal {

// One input of a model.
struct ModelInput {
  std::string name;
  Shape shape;
  std::optional<WholeNumbers> whole_numbers = {};  // range of its dtype
};

// A model as a layer: Sequential or Functional, nested in another model or read from its own file.
class ModelConfig : public LayerConfig {
 public:
  // The inputs of the model as an outer model.
  virtual absl::StatusOr<std::vector<ModelInput>> Inputs() const = 0;

  // Calls all its layers, on one value for each input. Returns its outputs.
  virtual absl::StatusOr<std::vector<ValueId>> CallLayers(const std::vector<ValueId>& inputs,
                                                          GraphInProgress* graph) = 0;

  // Its layers for a summary. Requires an earlier call of the model.
  virtual std::vector<LayerSummary> Summaries() const = 0;

  // Calls a nested model, which must have one output.
  absl::StatusOr<ValueId> Call(LayerCall& call) final;
};

// Returns the layer's line of the summary.
LayerSummary Summarize(const Layer& layer);
// Returns whether `layer` is an input of its model.
bool IsInputLayer(const Layer& layer);

}  // namespace shoal
