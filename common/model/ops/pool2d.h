#pragma once

#include "common/base/shape.h"
#include "common/model/op.h"
#include "common/model/ops/window.h"

namespace shoal {

// (x [B, H, W, C]) -> [B, H', W', C]. Only elements inside the image count. Each window has at
// least one.
struct Pool2DOp : Op {
  enum class Kind { kMax, kAverage };
  Kind kind = Kind::kMax;
  Window window;
  SHOAL_OP(Pool2D);
  bool KeepsWholeNumbers() const override { return kind == Kind::kMax; }
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (x, y, dy) -> dx. For kMax, the first of equal maxima in row-major order gets the whole gradient.
struct Pool2DBackwardOp : Op {
  Pool2DOp::Kind kind = Pool2DOp::Kind::kMax;
  Window window;
  SHOAL_OP(Pool2DBackward);
};
// (x [B, H, W, C]) -> [B, C], or [B, 1, 1, C] with keep_dims
struct GlobalAveragePool2DOp : Op {
  bool keep_dims = false;
  SHOAL_OP(GlobalAveragePool2D);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (dy) -> dx
struct GlobalAveragePool2DBackwardOp : Op {
  Shape x_shape;
  SHOAL_OP(GlobalAveragePool2DBackward);
};

}  // namespace shoal
