#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/keras/json_node.h"

namespace shoal {

// One number; or those of a list, or of a NumPy array as Keras 3 writes one into a config.
absl::StatusOr<std::vector<double>> ReadNumbers(const JsonNode& json,
                                                std::optional<double> absent = {});

}  // namespace shoal
