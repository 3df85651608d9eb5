#pragma once

#include <cstdint>

#include "common/base/shape.h"
#include "common/model/op.h"

namespace shoal {

// (x [B, H, W, C]) -> [B, height, width, C]. Same as keras.ops.image.resize without antialias:
// pixels are areas with centres at halves. Element i of an output axis is at (i + 0.5) * in / out -
// 0.5 on the input's axis.
struct ResizeOp : Op {
  enum class Interpolation { kNearest, kBilinear };
  int64_t height = 1;
  int64_t width = 1;
  Interpolation interpolation = Interpolation::kNearest;
  SHOAL_OP(Resize);
  bool KeepsWholeNumbers() const override { return interpolation == Interpolation::kNearest; }
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (dy) -> dx
struct ResizeBackwardOp : Op {
  Shape x_shape;
  ResizeOp::Interpolation interpolation = ResizeOp::Interpolation::kNearest;
  SHOAL_OP(ResizeBackward);
};

}  // namespace shoal
