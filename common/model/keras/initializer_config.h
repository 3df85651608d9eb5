#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/base/shape.h"
#include "common/model/initializer.h"
#include "common/model/keras/json_node.h"

namespace shoal {

// Reads a Keras initializer, "glorot_uniform" or {"class_name": "GlorotUniform", "config": {...}},
// for a variable of that shape; null means `default_name`.
absl::StatusOr<Initializer> ReadInitializer(const JsonNode& json, const std::string& default_name,
                                            const Shape& shape);

}  // namespace shoal
