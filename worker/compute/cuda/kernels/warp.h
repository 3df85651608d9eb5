#pragma once

#include "common/model/ops/warp.h"
#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/cuda/kernels/sliding_window.h"
#include "worker/compute/op_math/warp_sources.h"

// WarpOp of [B, H, W, C], and its gradient.

namespace shoal::cuda {

struct WarpExtents {
  WarpAttributes attributes;
  int64_t batch;
  int32_t height, width;          // of x
  int32_t out_height, out_width;  // of y
  int32_t channels;
  int32_t numbers;  // per image

  // Calls visit(pixel, weight) for the sources of pixel (h, w) of y. `pixel` is the number of a
  // pixel in the image of x, or -1 for the constant outside.
  template <typename Visit>
  SHOAL_HOST_DEVICE void ForEachSource(const WarpMap& map, int32_t h, int32_t w,
                                       Visit visit) const {
    const WarpSource row = WarpSourceAt(attributes, map.Row(h, w), height);
    const WarpSource column = WarpSourceAt(attributes, map.Column(h, w), width);
    for (int a = 0; a < 2; ++a) {
      for (int b = 0; b < 2; ++b) {
        const double weight = row.weight[a] * column.weight[b];
        if (weight == 0) continue;
        const bool outside = row.index[a] < 0 || column.index[b] < 0;
        visit(outside ? -1 : row.index[a] * width + column.index[b], weight);
      }
    }
  }
  SHOAL_HOST_DEVICE WarpMap MapOf(const float* of_all, int32_t image) const {
    return WarpMapOf(attributes, of_all + int64_t{image} * numbers, numbers, height, width);
  }
};

// Bound by the arithmetic in double on positions. It must agree with the other backends about the
// nearest pixel.
struct WarpKernel {
  WarpExtents extents;
  const float* x;
  const float* numbers;
  float* y;

  int64_t items() const {
    return extents.batch * extents.out_height * extents.out_width * extents.channels;
  }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const WarpExtents& e = extents;
    const PixelOfItem at(item, e.channels, e.out_height, e.out_width);
    const float* image = x + int64_t{at.image} * e.height * e.width * e.channels + at.pack;
    double sum = 0;
    e.ForEachSource(e.MapOf(numbers, at.image), at.h, at.w, [&](int64_t pixel, double weight) {
      sum += weight * (pixel < 0 ? e.attributes.fill_value : image[pixel * e.channels]);
    });
    y[item] = static_cast<float>(sum);
  }
};

// Scatters with one thread per channel of an image, so that the order of the sums is always the
// same. Gathering would need an inverse of the map, which does not exist where the map folds images
// at their sides. Far from any hardware bound: only the rare model with trainable layers before a
// warp needs it.
struct WarpBackwardKernel {
  WarpExtents extents;
  const float* dy;
  const float* numbers;
  float* dx;

  int64_t items() const { return extents.batch * extents.channels; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const WarpExtents& e = extents;
    const int32_t image = item / e.channels, channel = item % e.channels;
    const int64_t pixels = int64_t{e.height} * e.width;
    float* const to = dx + image * pixels * e.channels + channel;
    for (int64_t i = 0; i < pixels; ++i) to[i * e.channels] = 0;
    const float* from = dy + int64_t{image} * e.out_height * e.out_width * e.channels + channel;
    const WarpMap map = e.MapOf(numbers, image);
    for (int32_t h = 0; h < e.out_height; ++h) {
      for (int32_t w = 0; w < e.out_width; ++w, from += e.channels) {
        e.ForEachSource(map, h, w, [&](int64_t pixel, double weight) {
          if (pixel >= 0) to[pixel * e.channels] += static_cast<float>(weight) * *from;
        });
      }
    }
  }
};

}  // namespace shoal::cuda
