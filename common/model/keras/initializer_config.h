#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/shape.h"
#include "common/model/initializer.h"
#include "common/model/keras/json_node.h"

namespace shoal {

// An initializer and where it stands.
struct InitializerConfig {
  JsonNode json;
  Initializer initializer = {};
};

// Reads a Keras initializer, "glorot_uniform" or {"class_name": "GlorotUniform", "config": {...}};
// null means `default_name`.
absl::StatusOr<InitializerConfig> ReadInitializer(const JsonNode& json,
                                                  const std::string& default_name);

// That the initializer can make a variable of that shape.
absl::Status CheckShape(const InitializerConfig& initializer, const Shape& shape);

}  // namespace shoal
