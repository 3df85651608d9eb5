#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/shape.h"
#include "common/json/json_node.h"
#include "common/json/keras_options.h"
#include "common/model/regularizer.h"

namespace shoal {

// A regularizer and its place in the JSON.
struct RegularizerConfig {
  JsonNode json;
  Regularizer regularizer = {};
};

// Reads a Keras regularizer, "l2" or {"class_name": "L2", "config": {...}}. Null means no
// regularizer.
absl::StatusOr<RegularizerConfig> ReadRegularizer(const JsonNode& json);

// Reads the options l1 and l2. Absent ones are 0.
void ReadPenaltyFactors(KerasOptions& options, Regularizer* regularizer);

// Returns an error unless the regularizer fits a variable of this shape.
absl::Status CheckShape(const RegularizerConfig& regularizer, const Shape& shape);

}  // namespace shoal
