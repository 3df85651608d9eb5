#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/shape.h"
#include "worker/compute/cuda/kernels/fast_divisor.h"
#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/cuda/kernels/pack.h"

// Ops that address tensors by axes, with one division per axis: repeated values, boxes in boxes,
// sums over some axes. Boxes use packs where their elements are adjacent, and are bound by
// bandwidth. The others work by elements, and are small compared to the layers around them.

namespace shoal::cuda {

// Axes in row-major order of the walk, with the stride of a tensor along each: 0 for repeated
// values.
struct StridedAxes {
  static constexpr int kMax = 6;

  int32_t count = 0;
  int64_t extents[kMax] = {};  // innermost first
  int64_t strides[kMax] = {};

  // The offset in the tensor of step `i` of the walk.
  SHOAL_HOST_DEVICE int64_t Offset(int64_t i) const {
    int64_t offset = 0;
    for (int axis = 0; axis < count; ++axis) {
      // The outermost axis takes the rest.
      const int64_t next = axis + 1 == count ? 0 : i / extents[axis];
      offset += (i - next * extents[axis]) * strides[axis];
      i = next;
    }
    return offset;
  }

  // Whether the walk can use packs of `width` neighbouring elements, at multiples of `width`.
  bool HasPacks(int width) const {
    if (count == 0 || strides[0] != 1 || extents[0] % width != 0) return false;
    return std::all_of(strides + 1, strides + count,
                       [&](int64_t stride) { return stride % width == 0; });
  }

  // Adds an axis outside the existing ones; false if there is no room.
  bool AddOuter(int64_t extent, int64_t stride) {
    if (extent == 1) return true;
    if (count > 0 && stride == strides[count - 1] * extents[count - 1]) {
      extents[count - 1] *= extent;
      return true;
    }
    if (count == kMax) return false;
    extents[count] = extent;
    strides[count++] = stride;
    return true;
  }
};

inline absl::Status TooManyAxes(const Shape& shape) {
  return absl::UnimplementedError(absl::StrCat("the cuda backend has no kernel for shapes like ",
                                               ShapeToString(shape), ": they have too many axes"));
}
// Returns `axes` if `fit`, that is if AddOuter had room for all axes.
inline absl::StatusOr<StridedAxes> AxesIf(bool fit, const StridedAxes& axes, const Shape& shape) {
  if (fit) return axes;
  return TooManyAxes(shape);
}

// Row-major strides of `shape`.
inline std::vector<int64_t> StridesOf(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

// The walk in the order of `repeated` along a tensor of `shape` whose values are repeated (defined
// at BinaryOp).
inline absl::StatusOr<StridedAxes> RepeatedAxes(const Shape& shape, const Shape& repeated) {
  const std::vector<int64_t> strides = StridesOf(shape);
  StridedAxes axes;
  bool fit = true;
  for (size_t axis = 1; axis <= repeated.size(); ++axis) {
    const bool goes_on = axis <= shape.size() && shape[shape.size() - axis] != 1;
    fit = fit && axes.AddOuter(repeated[repeated.size() - axis],
                               goes_on ? strides[shape.size() - axis] : 0);
  }
  return AxesIf(fit, axes, repeated);
}

// A walk through a box of extents `box` in a tensor of `shape`, from the beginning of the box.
inline absl::StatusOr<StridedAxes> BoxAxes(const Shape& box, const Shape& shape) {
  const std::vector<int64_t> strides = StridesOf(shape);
  StridedAxes axes;
  bool fit = true;
  for (size_t axis = box.size(); axis-- > 0;) {
    fit = fit && axes.AddOuter(box[axis], strides[axis]);
  }
  return AxesIf(fit, axes, shape);
}

// A divisor for an axis in a kernel. If an axis is longer than the max, there are more packs than a
// kernel takes, and it is never launched.
inline FastDivisor ByExtent(int64_t extent) {
  return FastDivisor(static_cast<int32_t>(std::clamp<int64_t>(extent, 1, INT32_MAX)));
}

// A walk by packs of `width` neighbouring elements, with cheap divisions.
template <int width>
struct PackedAxes {
  // Requires axes.HasPacks(width).
  explicit PackedAxes(const StridedAxes& axes) : count(axes.count) {
    for (int axis = 0; axis < count; ++axis) {
      by_extent[axis] = ByExtent(axes.extents[axis] / (axis == 0 ? width : 1));
      strides[axis] = axes.strides[axis] * (axis == 0 ? width : 1);
    }
  }

  // The offset in the tensor of pack `i` of the walk, in elements.
  SHOAL_HOST_DEVICE int64_t Offset(int32_t i) const {
    int64_t offset = 0;
    for (int axis = 0; axis < count; ++axis) {
      const int32_t next = axis + 1 == count ? 0 : i / by_extent[axis];
      offset += (i - next * by_extent[axis].divisor()) * strides[axis];
      i = next;
    }
    return offset;
  }

  int32_t count;
  FastDivisor by_extent[StridedAxes::kMax];
  int64_t strides[StridedAxes::kMax];
};

// Calls use(width) with the widest pack of Element for which fits(width), or one element.
template <typename Element, int width = 16 / sizeof(Element), typename Fits, typename Use>
void WithFittingWidth(const Fits& fits, const Use& use) {
  if constexpr (width > 1) {
    if (!fits(width)) return WithFittingWidth<Element, width / 2>(fits, use);
  }
  use(std::integral_constant<int, width>());
}

// to[to_axes] = from[from_axes]
template <typename Element, int width>
struct StridedCopyKernel {
  const Element* from;
  PackedAxes<width> from_axes;
  Element* to;
  PackedAxes<width> to_axes;
  int64_t count;  // elements

  int64_t items() const { return count / width; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    StoreRaw(LoadRaw<width>(from + from_axes.Offset(item)), to + to_axes.Offset(item));
  }
};

// Bound by its writes.
template <int width>
struct FloatsOfBytesKernel {
  const uint8_t* from;
  float* to;
  int64_t count;  // a multiple of width

  int64_t items() const { return count / width; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const int64_t at = int64_t{item} * width;
    Store(Load<width>(from + at), to + at);
  }
};

template <typename Element, int width>
struct FillKernel {
  float value;
  Element* to;
  int64_t count;  // a multiple of width

  int64_t items() const { return count / width; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    Pack<width> pack;
    for (int i = 0; i < width; ++i) pack[i] = value;
    Store(pack, to + int64_t{item} * width);
  }
};

}  // namespace shoal::cuda
