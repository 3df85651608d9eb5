#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/shape.h"
#include "common/json/json_node.h"
#include "common/model/initializer.h"

namespace shoal {

// An initializer and its place in the JSON.
struct InitializerConfig {
  JsonNode json;
  Initializer initializer = {};
};

// Reads a Keras initializer, "glorot_uniform" or {"class_name": "GlorotUniform", "config": {...}};
// null means `default_name`.
absl::StatusOr<InitializerConfig> ReadInitializer(const JsonNode& json,
                                                  const std::string& default_name);

// Returns an error unless the initializer can make a variable of this shape.
absl::Status CheckShape(const InitializerConfig& initializer, const Shape& shape);

}  // namespace shoal
