#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/model/keras/json_node.h"
#include "common/model/keras/layer.h"
#include "common/model/ops/activation.h"

namespace shoal {

// The op of an activation that an option names, "relu" or an object; null for null and "linear",
// which compute nothing.
absl::StatusOr<std::shared_ptr<const Op>> ReadActivation(const JsonNode& json,
                                                         const ModelTraits& traits);

// The options of a layer that can also stand where an activation is named: ELU, LeakyReLU or ReLU.
absl::StatusOr<ActivationAttributes> ReadActivationLayer(const std::string& class_name,
                                                         ConfigReader& config);

}  // namespace shoal
