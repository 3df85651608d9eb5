#pragma once

#include <cstdint>

#include "common/base/shape.h"
#include "common/model/op.h"
#include "common/model/ops/resize.h"

namespace shoal {

// An affine map of images onto images, with numbers for each example, and what becomes of places
// beside pixels and beyond the sides: as in keras.ops.image.affine_transform, and as the layers of
// Keras that augment images make its matrix.
struct WarpAttributes {
  enum class Kind {
    kFlip,       // (share): mirrored where it is at most 0.5
    kTranslate,  // (down, right): shares of the height and the width
    kRotate,     // (turns), counter-clockwise
    kZoom,       // (height, width), or one number for both: more of the image above 1, less below
    kCrop,       // (row, column): where the output's first pixel is
  };
  enum class Fill {
    kConstant,  // k k k | a b c | k k k
    kNearest,   // a a a | a b c | c c c
    kReflect,   // c b a | a b c | c b a
    kWrap,      // a b c | a b c | a b c
  };
  Kind kind = Kind::kFlip;
  bool flip_rows = false;     // kFlip: upside down
  bool flip_columns = false;  // kFlip: left to right
  Fill fill = Fill::kConstant;
  double fill_value = 0;
  ResizeOp::Interpolation interpolation = ResizeOp::Interpolation::kNearest;
};

// (x [B, H, W, C], numbers [B, n]) -> [B, height, width, C]; of a crop alone those are not x's own
struct WarpOp : Op {
  WarpAttributes attributes;
  int64_t height = 1;
  int64_t width = 1;
  SHOAL_OP(Warp);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (dy, numbers) -> dx
struct WarpBackwardOp : Op {
  WarpAttributes attributes;
  Shape x_shape;
  SHOAL_OP(WarpBackward);
};

}  // namespace shoal
