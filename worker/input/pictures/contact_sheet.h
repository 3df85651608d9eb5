#pragma once

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/shape.h"

namespace shoal {

// Returns a PNG with all pictures of a batch in rows. `values` holds the pictures, each of `shape`
// (height, width and 1, 3 or 4 channels; or height and width). Black to white is 0 to 255 if any
// value is above 1, else -1 to 1 if any value is below 0, else 0 to 1. Returns kInvalidArgument if
// the shape is not a picture's, or if there are no pictures or too many.
absl::StatusOr<std::string> DrawContactSheet(std::span<const float> values, const Shape& shape);

}  // namespace shoal
