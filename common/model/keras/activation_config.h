#pragma once

#include "absl/status/statusor.h"
#include "common/model/keras/json_node.h"
#include "common/model/keras/layer_builder.h"
#include "common/model/ops/activation.h"

namespace shoal {

// Appends the activation that an option names, "relu" or an object, to `x`; null and "linear"
// append nothing. Returns the activated value.
absl::StatusOr<ValueId> AddActivation(LayerBuilder& layer, const JsonNode& activation, ValueId x);

// The options of the layer ReLU, which can also stand where an activation is named.
absl::StatusOr<ActivationAttributes> ReadReluOptions(ConfigReader& config);

}  // namespace shoal
