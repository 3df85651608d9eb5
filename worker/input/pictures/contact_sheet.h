#pragma once

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/shape.h"

namespace shoal {

// A PNG with the pictures of a batch next to each other, row by row, as many as
// there are: `values` holds them, each of `shape` (height, width and 1, 3 or 4 channels; or height
// and width). Values from 0 to 1 are drawn from black to white; if some are greater, 0 to 255
// are, and if some are below 0 but none greater than 1, -1 to 1. kInvalidArgument where the shape
// is that of no picture or of too many.
absl::StatusOr<std::string> DrawContactSheet(std::span<const float> values, const Shape& shape);

}  // namespace shoal
