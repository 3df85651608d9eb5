#pragma once

#include "absl/status/statusor.h"
#include "common/model/graph.h"

namespace shoal {

// Returns an equivalent model in which the readers of zeros around an image (Keras's ZeroPadding2D)
// add them themselves: convolutions and depthwise convolutions without padding and, after a ReLU,
// max poolings without padding. This saves writing the padded image and cropping its gradient.
// Keeps a padding layer if the dtypes of the layers would make the reader see other values.
absl::StatusOr<Graph> FoldPadding(const Graph& model);

}  // namespace shoal
