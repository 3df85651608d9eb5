#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/json/json_node.h"

namespace shoal {

// Reads one number, a list of numbers, or a NumPy array in the form that Keras 3 writes into a
// config.
absl::StatusOr<std::vector<double>> ReadNumbers(const JsonNode& json,
                                                std::optional<double> absent = {});

}  // namespace shoal
