#pragma once

#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/cuda/kernels/sliding_window.h"
#include "worker/compute/op_math/resize_sources.h"

// ResizeOp of [B, H, W, C], and its gradient. Bound by bandwidth. The gradient of strongly enlarged
// images is bound by the search for the outputs of a pixel.

namespace shoal::cuda {

struct ResizeExtents {
  ResizeOp::Interpolation interpolation;
  int64_t batch;
  int32_t height, width;          // of x
  int32_t out_height, out_width;  // of y
  int32_t channels;
};

struct ResizeKernel {
  ResizeExtents extents;
  const float* x;
  float* y;

  int64_t items() const {
    return extents.batch * extents.out_height * extents.out_width * extents.channels;
  }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const ResizeExtents& e = extents;
    const PixelOfItem at(item, e.channels, e.out_height, e.out_width);
    const ResizeSource row = ResizeSourceOf(e.interpolation, e.height, e.out_height, at.h);
    const ResizeSource column = ResizeSourceOf(e.interpolation, e.width, e.out_width, at.w);
    double sum = 0;
    for (int a = 0; a < 2; ++a) {
      for (int b = 0; b < 2; ++b) {
        const double weight = row.weight[a] * column.weight[b];
        if (weight == 0) continue;
        const int64_t pixel =
            (int64_t{at.image} * e.height + row.index[a]) * e.width + column.index[b];
        sum += weight * x[pixel * e.channels + at.pack];
      }
    }
    y[item] = static_cast<float>(sum);
  }
};

// Gathers: each pixel of dx looks for the pixels of dy that depend on it.
struct ResizeBackwardKernel {
  ResizeExtents extents;
  const float* dy;
  float* dx;

  int64_t items() const {
    return extents.batch * extents.height * extents.width * extents.channels;
  }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const ResizeExtents& e = extents;
    const PixelOfItem at(item, e.channels, e.height, e.width);
    const Range rows(at.h, e.height, e.out_height), columns(at.w, e.width, e.out_width);
    double sum = 0;
    for (int64_t h = rows.first; h < rows.end; ++h) {
      const double by_row = Weight(e.height, e.out_height, h, at.h);
      if (by_row == 0) continue;
      for (int64_t w = columns.first; w < columns.end; ++w) {
        const double weight = by_row * Weight(e.width, e.out_width, w, at.w);
        if (weight == 0) continue;
        const int64_t pixel = (int64_t{at.image} * e.out_height + h) * e.out_width + w;
        sum += weight * dy[pixel * e.channels + at.pack];
      }
    }
    dx[item] = static_cast<float>(sum);
  }

 private:
  // The range of elements on an axis of length `out` that may depend on element `i` on an axis of
  // length `in`: those at most one away from it, and one more on each side because of rounding.
  struct Range {
    SHOAL_HOST_DEVICE Range(int64_t i, int64_t in, int64_t out)
        : first(i < 2 ? 0 : (i - 1) * out / in - 1), end((i + 2) * out / in + 2) {
      if (first < 0) first = 0;
      if (end > out) end = out;
    }
    int64_t first, end;
  };

  // The weight of element `from` in element `i` of the resized axis.
  SHOAL_HOST_DEVICE double Weight(int64_t in, int64_t out, int64_t i, int64_t from) const {
    const ResizeSource source = ResizeSourceOf(extents.interpolation, in, out, i);
    return (source.index[0] == from ? source.weight[0] : 0) +
           (source.index[1] == from ? source.weight[1] : 0);
  }
};

}  // namespace shoal::cuda
