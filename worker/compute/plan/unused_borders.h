#pragma once

#include "absl/status/statusor.h"
#include "common/model/graph.h"

namespace shoal {

// The same model without the rows and columns that nothing reads. A pooling without padding whose
// windows do not cover its input leaves some over, and with them a part of every convolution before
// it: with an image of 28 x 28, two 3 x 3 convolutions with a 2 x 2 pooling each need 26 x 26 of
// it, a sixth less work. All values that remain are the same. A model in which no convolution gets
// smaller comes back as it is.
absl::StatusOr<Graph> CropUnusedBorders(const Graph& model);

}  // namespace shoal
