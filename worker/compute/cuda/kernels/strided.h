#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/shape.h"
#include "common/model/ops/binary.h"
#include "worker/compute/cuda/kernels/bfloat16.h"
#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/elementwise_functions.h"

// What goes through tensors by axes: repeated values, boxes in boxes, sums over some axes. An
// element at a time, with a division an axis: for what is small beside the layers around it.

namespace shoal::cuda {

// Axes that are walked through in row-major order, and how far apart the elements of a tensor lie
// along each: 0 where they are repeated.
struct StridedAxes {
  static constexpr int kMost = 6;

  int32_t count = 0;
  int64_t extents[kMost] = {};  // innermost first
  int64_t strides[kMost] = {};

  // Where place `i` of the walk is in the tensor.
  SHOAL_HOST_DEVICE int64_t Offset(int64_t i) const {
    int64_t offset = 0;
    for (int axis = 0; axis < count; ++axis) {
      // The outermost takes what is left.
      const int64_t next = axis + 1 == count ? 0 : i / extents[axis];
      offset += (i - next * extents[axis]) * strides[axis];
      i = next;
    }
    return offset;
  }

  // Adds an axis outside of those that there are; false where there is no place for it.
  bool AddOuter(int64_t extent, int64_t stride) {
    if (extent == 1) return true;
    if (count > 0 && stride == strides[count - 1] * extents[count - 1]) {
      extents[count - 1] *= extent;
      return true;
    }
    if (count == kMost) return false;
    extents[count] = extent;
    strides[count++] = stride;
    return true;
  }
};

// `axes`, all of which AddOuter had a place for.
inline absl::StatusOr<StridedAxes> AxesIf(bool fit, const StridedAxes& axes, const Shape& shape) {
  if (fit) return axes;
  return absl::UnimplementedError(absl::StrCat("the cuda backend has no kernel for shapes like ",
                                               ShapeToString(shape), ": they have too many axes"));
}

// Row-major strides of `shape`.
inline std::vector<int64_t> StridesOf(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

// A walk through `repeated` along a tensor of `shape` whose values are repeated to give it
// (BinaryOp says how).
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

// A walk through a box of extents `box` in a tensor of `shape`, from where it begins.
inline absl::StatusOr<StridedAxes> BoxAxes(const Shape& box, const Shape& shape) {
  const std::vector<int64_t> strides = StridesOf(shape);
  StridedAxes axes;
  bool fit = true;
  for (size_t axis = box.size(); axis-- > 0;) {
    fit = fit && axes.AddOuter(box[axis], strides[axis]);
  }
  return AxesIf(fit, axes, shape);
}

// to[to_axes] = from[from_axes]
template <typename Element>
struct StridedCopyKernel {
  const Element* from;
  StridedAxes from_axes;
  Element* to;
  StridedAxes to_axes;
  int64_t count;

  int64_t items() const { return count; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    to[to_axes.Offset(item)] = from[from_axes.Offset(item)];
  }
};

// Bound by what it writes.
struct FloatsOfBytesKernel {
  const uint8_t* from;
  float* to;
  int64_t count;

  int64_t items() const { return count; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const { to[item] = from[item]; }
};

template <typename Element>
struct FillKernel {
  float value;
  Element* to;
  int64_t count;

  int64_t items() const { return count; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const { to[item] = FromFloat<Element>(value); }
};

// BinaryOp of tensors that are repeated.
template <BinaryOp::Kind kind>
struct RepeatedBinaryKernel {
  const float* a;
  StridedAxes a_axes;
  const float* b;
  StridedAxes b_axes;
  float* y;
  int64_t count;

  int64_t items() const { return count; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    y[item] = shoal::Binary<kind>(a[a_axes.Offset(item)], b[b_axes.Offset(item)]);
  }
};

}  // namespace shoal::cuda
