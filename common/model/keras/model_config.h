#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/keras/layer.h"
#include "common/model/keras_model.h"

namespace shoal {

// What a model says of one of its inputs.
struct ModelInput {
  std::string name;
  Shape shape;
  std::optional<WholeNumbers> whole_numbers = {};  // by its dtype
};

// A model as a layer: Sequential or Functional, nested in another or read from a file of its own.
class ModelConfig : public LayerConfig {
 public:
  // The inputs of the model when it stands alone.
  virtual absl::StatusOr<std::vector<ModelInput>> Inputs() const = 0;

  // Calls all its layers, on a value for each input; its outputs.
  virtual absl::StatusOr<std::vector<ValueId>> CallLayers(const std::vector<ValueId>& inputs,
                                                          GraphInProgress* graph) = 0;

  // Its layers once it was called, as a summary lists them.
  virtual std::vector<LayerSummary> Summaries() const = 0;

  // Nested models have one output.
  absl::StatusOr<ValueId> Call(LayerCall& call) final;
};

// The layer's line of the summary.
LayerSummary Summarize(const Layer& layer);

}  // namespace shoal
