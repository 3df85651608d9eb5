#pragma once

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "common/base/shape.h"

namespace shoal {

enum class Padding { kValid, kSame };

// A window sliding over two spatial axes. Keras's SAME: out = ceil(in / stride),
// total = max((out - 1) * stride + (k - 1) * dilation + 1 - in, 0), before = total / 2.
struct Window {
  std::array<int64_t, 2> size = {1, 1};
  std::array<int64_t, 2> strides = {1, 1};
  std::array<int64_t, 2> dilation = {1, 1};
  Padding padding = Padding::kValid;
  // With kValid: zeros around the input along each axis, of which it knows nothing. To a pooling
  // they are no values: neither a maximum nor counted.
  std::array<int64_t, 2> zeros_before = {0, 0};
  std::array<int64_t, 2> zeros_after = {0, 0};

  // Extent of the output along spatial axis `axis` for an input of `in`; <= 0 when the window does
  // not fit.
  int64_t OutputExtent(int axis, int64_t in) const;
  // Zeros before the first element along `axis`.
  int64_t PaddingBefore(int axis, int64_t in) const;
  // [B, H, W, C] -> [B, H', W', C]; an error when the window does not fit.
  absl::StatusOr<Shape> OutputShape(const Shape& image) const;
};

}  // namespace shoal
