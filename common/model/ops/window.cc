#include "common/model/ops/window.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/model/graph.h"

namespace shoal {

int64_t Window::OutputExtent(int axis, int64_t in) const {
  if (padding == Padding::kSame) return (in + strides[axis] - 1) / strides[axis];
  const int64_t reach = (size[axis] - 1) * dilation[axis] + 1;
  const int64_t padded = in + zeros_before[axis] + zeros_after[axis];
  return padded < reach ? 0 : (padded - reach) / strides[axis] + 1;
}

int64_t Window::PaddingBefore(int axis, int64_t in) const {
  if (padding == Padding::kValid) return zeros_before[axis];
  const int64_t reach = (size[axis] - 1) * dilation[axis] + 1;
  const int64_t total = (OutputExtent(axis, in) - 1) * strides[axis] + reach - in;
  return std::max<int64_t>(total, 0) / 2;
}

absl::StatusOr<Shape> Window::OutputShape(const Shape& image) const {
  Shape shape = image;
  for (int axis = 0; axis < 2; ++axis) {
    shape[1 + axis] = OutputExtent(axis, image[1 + axis]);
    if (shape[1 + axis] > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "a window of (", size[0], ", ", size[1], ")",
        dilation == std::array<int64_t, 2>{1, 1}
            ? ""
            : absl::StrCat(", dilated by (", dilation[0], ", ", dilation[1], "),"),
        " does not fit into the input of shape ", ShapeToString(image), " without padding"));
  }
  return shape;
}

}  // namespace shoal
