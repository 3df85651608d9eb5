#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/json/json_node.h"
#include "common/json/keras_options.h"
#include "common/model/keras/options/model_traits.h"
#include "common/model/op.h"
#include "common/model/ops/activation.h"

namespace shoal {

// Reads an option that names an activation, "relu" or an object. Returns null for null and
// "linear", which compute nothing.
absl::StatusOr<std::shared_ptr<const Op>> ReadActivation(const JsonNode& json,
                                                         const ModelTraits& traits);

// Read the options of layers that Keras also accepts as activations.
ActivationAttributes ReadRelu(KerasOptions& options);
ActivationAttributes ReadLeakyRelu(KerasOptions& options);
ActivationAttributes ReadElu(KerasOptions& options);

}  // namespace shoal
