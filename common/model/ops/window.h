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
  // With kValid: zeros around the input along each axis, which is stored without them. Pooling does
  // not treat them as values: it neither counts them nor takes them as a maximum.
  std::array<int64_t, 2> zeros_before = {0, 0};
  std::array<int64_t, 2> zeros_after = {0, 0};

  // Returns the output's extent along spatial axis `axis` for an input of extent `in`. It is <= 0
  // if the window does not fit.
  int64_t OutputExtent(int axis, int64_t in) const;
  // The number of zeros before the first element along `axis`.
  int64_t PaddingBefore(int axis, int64_t in) const;
  // Returns [B, H', W', C] for an image of [B, H, W, C], or an error if the window does not fit.
  absl::StatusOr<Shape> OutputShape(const Shape& image) const;
};

}  // namespace shoal
