#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/model/keras/json_node.h"
#include "common/model/keras/layer.h"
#include "common/model/ops/activation.h"

namespace shoal {

// The op of an activation that an option names, "relu" or an object; null for null and "linear",
// which compute nothing.
absl::StatusOr<std::shared_ptr<const Op>> ReadActivation(const JsonNode& json,
                                                         const ModelTraits& traits);

// The options of the layers that can also stand where an activation is named.
absl::StatusOr<ActivationAttributes> ReadRelu(ConfigReader& config);
absl::StatusOr<ActivationAttributes> ReadLeakyRelu(ConfigReader& config);
absl::StatusOr<ActivationAttributes> ReadElu(ConfigReader& config);

}  // namespace shoal
