#pragma once

#include "absl/status/status.h"
#include "common/model/keras/json_node.h"

namespace shoal {

// That a layer's or a model's dtype, a name or a Keras 3 policy object, is float32 or absent.
absl::Status CheckDtype(const JsonNode& dtype);

// That the dtype of a model's input is float32 or that of whole numbers, which are held as float32:
// exact up to 2^24.
absl::Status CheckInputDtype(const JsonNode& dtype);

}  // namespace shoal
