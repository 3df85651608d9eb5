#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/shape.h"
#include "common/model/keras/json_node.h"
#include "common/model/regularizer.h"

namespace shoal {

// A regularizer and where it stands.
struct RegularizerConfig {
  JsonNode json;
  Regularizer regularizer = {};
};

// Reads a Keras regularizer, "l2" or {"class_name": "L2", "config": {...}}; null is none.
absl::StatusOr<RegularizerConfig> ReadRegularizer(const JsonNode& json);

// Reads the options l1 and l2, 0 where they are absent.
absl::Status ReadPenaltyFactors(ConfigReader& config, Regularizer* regularizer);

// That the regularizer can be of a variable of that shape.
absl::Status CheckShape(const RegularizerConfig& regularizer, const Shape& shape);

}  // namespace shoal
