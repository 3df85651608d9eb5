#pragma once

#include <cstdint>

#include "common/base/shape.h"
#include "common/model/op.h"
#include "common/model/ops/window.h"

namespace shoal {

// (x [B, H, W, C], kernel [kh, kw, C / groups, F], bias [F] optional) -> [B, H', W', F].
// window.size is the kernel's size.
struct Conv2DOp : Op {
  Window window;
  int64_t groups = 1;
  SHOAL_OP(Conv2D);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (dy [B, H', W', F], kernel) -> dx. It is also the transposed convolution, and therefore has a
// gradient. Its `x_shape` is then the output's shape, which the window maps to the shape of its
// input.
struct Conv2DBackwardDataOp : Op {
  Window window;
  int64_t groups = 1;
  Shape x_shape;
  SHOAL_OP(Conv2DBackwardData);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (x, dy) -> dkernel
struct Conv2DBackwardWeightsOp : Op {
  Window window;
  int64_t groups = 1;
  Shape kernel_shape;
  SHOAL_OP(Conv2DBackwardWeights);
};

}  // namespace shoal
