#pragma once

#include "common/base/shape.h"
#include "common/model/op.h"
#include "common/model/ops/window.h"

namespace shoal {

// (x [B, H, W, C], kernel [kh, kw, C, M], bias [C * M] optional) -> [B, H', W', C * M]: output
// channel c * M + m reads only input channel c. window.size is the kernel's size.
struct DepthwiseConv2DOp : Op {
  Window window;
  SHOAL_OP(DepthwiseConv2D);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (dy, kernel) -> dx
struct DepthwiseConv2DBackwardDataOp : Op {
  Window window;
  Shape x_shape;
  SHOAL_OP(DepthwiseConv2DBackwardData);
};
// (x, dy) -> dkernel
struct DepthwiseConv2DBackwardWeightsOp : Op {
  Window window;
  Shape kernel_shape;
  SHOAL_OP(DepthwiseConv2DBackwardWeights);
};

}  // namespace shoal
