#pragma once

#include "absl/status/statusor.h"
#include "common/model/graph.h"

namespace shoal {

// The same model, where what reads zeros around an image (Keras's ZeroPadding2D) has them by
// itself: convolutions and depthwise convolutions without padding and, behind a ReLU, max poolings
// without padding. Nobody need write the padded image then, nor crop its gradient. Not where the
// layers' dtypes make the padded image another one than would be read.
absl::StatusOr<Graph> FoldPadding(const Graph& model);

}  // namespace shoal
