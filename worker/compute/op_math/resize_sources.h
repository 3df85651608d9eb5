#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "common/model/ops/resize.h"
#include "worker/compute/op_math/host_device.h"

namespace shoal {

// The sources of an element on a resized axis: two elements of the input, and their weights.
struct ResizeSource {
  std::array<int64_t, 2> index;
  std::array<double, 2> weight;
};

// The sources of element `i` on an axis resized from length `in` to `out`.
SHOAL_HOST_DEVICE inline ResizeSource ResizeSourceOf(ResizeOp::Interpolation interpolation,
                                                     int64_t in, int64_t out, int64_t i) {
  const double place = (i + 0.5) * in / out;
  if (interpolation == ResizeOp::Interpolation::kNearest) {
    const int64_t nearest = std::min(static_cast<int64_t>(place), in - 1);
    return {{nearest, nearest}, {1, 0}};
  }
  const double centre = std::clamp(place - 0.5, 0.0, static_cast<double>(in - 1));
  const auto low = static_cast<int64_t>(centre);
  const double share = centre - static_cast<double>(low);
  return {{low, std::min(low + 1, in - 1)}, {1 - share, share}};
}

// The sources of all elements of such an axis.
inline std::vector<ResizeSource> ResizeSources(ResizeOp::Interpolation interpolation, int64_t in,
                                               int64_t out) {
  std::vector<ResizeSource> sources(out);
  for (int64_t i = 0; i < out; ++i) sources[i] = ResizeSourceOf(interpolation, in, out, i);
  return sources;
}

}  // namespace shoal
