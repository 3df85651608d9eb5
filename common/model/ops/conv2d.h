#pragma once

#include <cstdint>

#include "common/base/shape.h"
#include "common/model/op.h"
#include "common/model/ops/window.h"

namespace shoal {

// (x [B, H, W, C], kernel [kh, kw, C / groups, F], bias [F] optional) -> [B, H', W', F].
// window.size is that of the kernel.
struct Conv2DOp : Op {
  Window window;
  int64_t groups = 1;
  SHOAL_OP(Conv2D);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (dy [B, H', W', F], kernel) -> dx. A transposed convolution is this, with an `x_shape` of which
// the window leaves what comes in, and therefore has a gradient of its own.
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
