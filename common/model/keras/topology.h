#pragma once

#include "absl/status/status.h"
#include "common/model/keras/json_node.h"
#include "common/model/keras/layer.h"
#include "common/model/keras_model.h"

namespace shoal {

// Build the graph and the layer list of `model` from the config of a Sequential or a Functional
// model.
absl::Status ReadSequential(const JsonNode& config, const ModelTraits& traits, KerasModel* model);
absl::Status ReadFunctional(const JsonNode& config, const ModelTraits& traits, KerasModel* model);

// The layer's line of the summary.
LayerSummary Summarize(const Layer& layer);

}  // namespace shoal
