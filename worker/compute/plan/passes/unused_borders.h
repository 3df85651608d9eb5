#pragma once

#include "absl/status/statusor.h"
#include "common/model/graph.h"

namespace shoal {

// Returns an equivalent model without the rows and columns that no node reads. A pooling without
// padding leaves a border unread if its windows do not cover its input. Then a part of every
// convolution before it is unnecessary, too. Example: for an image of 28 x 28, two 3 x 3
// convolutions with a 2 x 2 pooling each need only 26 x 26, a sixth less work. All remaining values
// are the same. Returns the model unchanged if no convolution gets smaller.
absl::StatusOr<Graph> CropUnusedBorders(const Graph& model);

}  // namespace shoal
