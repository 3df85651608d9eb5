#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/kernels/strided.h"

namespace shoal::cuda {

// The axes of a box in a larger one, merged where possible.
struct PaddedAxes {
  int32_t count = 0;
  // Of both boxes, innermost first; in elements.
  int64_t extents[StridedAxes::kMax] = {};
  int64_t before[StridedAxes::kMax] = {};
  int64_t inside[StridedAxes::kMax] = {};

  bool HasPacks(int width) const {
    return count > 0 && extents[0] % width == 0 && before[0] % width == 0 && inside[0] % width == 0;
  }
  // Adds an axis outside the existing ones; false if there is no room.
  bool AddOuter(int64_t extent, int64_t first, int64_t box) {
    const bool all = count > 0 && before[count - 1] == 0 && inside[count - 1] == extents[count - 1];
    if (!all && count == StridedAxes::kMax) return false;
    const int axis = all ? count - 1 : count++;
    const int64_t unit = all ? extents[axis] : 1;
    extents[axis] = extent * unit;
    before[axis] = first * unit;
    inside[axis] = box * unit;
    return true;
  }
};

// The position of a box of extents `box` in a tensor of `shape`. Along each axis except the first
// the box begins at `before`.
inline absl::StatusOr<PaddedAxes> PaddedAxesOf(const Shape& box, const std::vector<int64_t>& before,
                                               const Shape& shape) {
  PaddedAxes axes;
  bool fit = true;
  for (size_t axis = shape.size(); axis-- > 0;) {
    fit = fit && axes.AddOuter(shape[axis], axis == 0 ? 0 : before[axis - 1], box[axis]);
  }
  if (fit) return axes;
  return TooManyAxes(shape);
}

// to = from, with zeros around it
template <typename Element, int width>
struct PadKernel {
  // Requires axes with packs of `width`.
  PadKernel(const PaddedAxes& axes, const Element* from, Element* to)
      : axes(axes.count), count(1), from(from), to(to) {
    int64_t stride = width;
    for (int axis = 0; axis < axes.count; ++axis) {
      const int unit = axis == 0 ? width : 1;
      by_extent[axis] = ByExtent(axes.extents[axis] / unit);
      before[axis] = static_cast<int32_t>(axes.before[axis] / unit);
      inside[axis] = static_cast<int32_t>(axes.inside[axis] / unit);
      strides[axis] = stride;
      stride *= axes.inside[axis] / unit;
      count *= axes.extents[axis] / unit;
    }
  }

  int32_t axes;
  int64_t count;  // packs
  const Element* from;
  Element* to;
  FastDivisor by_extent[StridedAxes::kMax];  // of `to`, innermost first
  int32_t before[StridedAxes::kMax];
  int32_t inside[StridedAxes::kMax];
  int64_t strides[StridedAxes::kMax];  // of `from`

  int64_t items() const { return count; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    int64_t offset = 0;
    bool is_inside = true;
    int32_t rest = item;
    for (int axis = 0; axis < axes; ++axis) {
      const int32_t next = rest / by_extent[axis];
      const int32_t place = rest - next * by_extent[axis].divisor() - before[axis];
      is_inside = is_inside && static_cast<uint32_t>(place) < static_cast<uint32_t>(inside[axis]);
      offset += place * strides[axis];
      rest = next;
    }
    RawPack<Element, width> pack = {};
    if (is_inside) pack = LoadRaw<width>(from + offset);
    StoreRaw(pack, to + int64_t{item} * width);
  }
};

}  // namespace shoal::cuda
