#pragma once

#include <cstdint>

#include "common/base/shape.h"
#include "common/model/op.h"
#include "common/model/ops/resize.h"

namespace shoal {

// An affine map of images, with numbers for each example. It also defines how to fill places
// between pixels and beyond the sides. Same as keras.ops.image.affine_transform, with the matrices
// of Keras's layers that augment images.
struct WarpAttributes {
  enum class Kind {
    kFlip,       // (number): mirrors if it is at most 0.5
    kTranslate,  // (down, right), as fractions of the height and the width
    kRotate,     // (angle) in turns, counter-clockwise
    kZoom,       // (height, width), or one number for both: above 1 shows more of the image
    kCrop,       // (row, column) of the output's first pixel
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

// (x [B, H, W, C], numbers [B, n]) -> [B, height, width, C]. Only kCrop changes the size of x.
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
