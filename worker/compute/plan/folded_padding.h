#pragma once

#include "absl/status/statusor.h"
#include "common/model/graph.h"

namespace shoal {

// The same model, whose convolutions and depthwise convolutions without padding pad by themselves
// where they read zeros around an image (Keras's ZeroPadding2D): nobody need write the padded image
// then, nor crop its gradient. Not where the layers' dtypes make the padded image another one than
// the convolution would read.
absl::StatusOr<Graph> FoldPadding(const Graph& model);

}  // namespace shoal
