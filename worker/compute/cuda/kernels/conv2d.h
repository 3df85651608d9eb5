#pragma once

#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/cuda/kernels/sliding_window.h"

// Conv2DOp and its gradients by plain sums, with groups: x [B, H, W, C], kernel [kh, kw, C /
// groups, F], y [B, H', W', F]. For convolutions that cuDNN does not support, and for machines
// without cuDNN. Bound by repeated reads: it reaches a hundredth of the possible arithmetic.

namespace shoal::cuda {

struct ConvolutionExtents {
  ConvolutionExtents(const Window& window, int64_t groups, const Shape& x, int64_t filters)
      : window(window, x),
        batch(x[0]),
        channels(static_cast<int32_t>(x[3])),
        filters(static_cast<int32_t>(filters)),
        group_channels(static_cast<int32_t>(x[3] / groups)),
        group_filters(static_cast<int32_t>(filters / groups)) {}

  SlidingWindow window;
  int64_t batch;
  int32_t channels;
  int32_t filters;
  int32_t group_channels;
  int32_t group_filters;

  SHOAL_HOST_DEVICE int64_t XAt(int64_t image, int32_t h, int32_t w) const {
    return ((image * window.h.in + h) * window.w.in + w) * channels;
  }
  SHOAL_HOST_DEVICE int64_t YAt(int64_t image, int32_t h, int32_t w) const {
    return ((image * window.h.out + h) * window.w.out + w) * filters;
  }
  SHOAL_HOST_DEVICE int64_t KernelAt(int32_t kh, int32_t kw, int32_t group_channel) const {
    return ((int64_t{kh} * window.w.size + kw) * group_channels + group_channel) * filters;
  }
};

struct Conv2DKernel {
  ConvolutionExtents extents;
  const float* x;
  const float* kernel;
  const float* bias;  // null: none
  float* y;

  int64_t items() const {
    return extents.batch * extents.window.h.out * extents.window.w.out * extents.filters;
  }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const SlidingWindow& window = extents.window;
    const PixelOfItem at(item, extents.filters, window.h.out, window.w.out);
    const int32_t filter = at.pack;
    const int32_t first = filter / extents.group_filters * extents.group_channels;
    float sum = bias == nullptr ? 0 : bias[filter];
    for (int32_t kh = 0; kh < window.h.size; ++kh) {
      const int32_t h = window.h.Input(at.h, kh);
      if (!window.h.Inside(h)) continue;
      for (int32_t kw = 0; kw < window.w.size; ++kw) {
        const int32_t w = window.w.Input(at.w, kw);
        if (!window.w.Inside(w)) continue;
        const float* const from = x + extents.XAt(at.image, h, w) + first;
        const float* const by = kernel + extents.KernelAt(kh, kw, 0) + filter;
        for (int32_t c = 0; c < extents.group_channels; ++c) {
          sum += from[c] * by[int64_t{c} * extents.filters];
        }
      }
    }
    y[item] = sum;
  }
};

struct Conv2DBackwardDataKernel {
  ConvolutionExtents extents;
  const float* dy;
  const float* kernel;
  float* dx;

  int64_t items() const {
    return extents.batch * extents.window.h.in * extents.window.w.in * extents.channels;
  }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const SlidingWindow& window = extents.window;
    const PixelOfItem at(item, extents.channels, window.h.in, window.w.in);
    const int32_t group = at.pack / extents.group_channels;
    const int32_t first = group * extents.group_filters;
    float sum = 0;
    for (int32_t kh = 0; kh < window.h.size; ++kh) {
      const int32_t h = window.h.Output(at.h, kh);
      if (h < 0) continue;
      for (int32_t kw = 0; kw < window.w.size; ++kw) {
        const int32_t w = window.w.Output(at.w, kw);
        if (w < 0) continue;
        const float* const from = dy + extents.YAt(at.image, h, w) + first;
        const float* const by =
            kernel + extents.KernelAt(kh, kw, at.pack % extents.group_channels) + first;
        for (int32_t f = 0; f < extents.group_filters; ++f) sum += from[f] * by[f];
      }
    }
    dx[item] = sum;
  }
};

// One block per element of dkernel.
struct Conv2DBackwardWeightsKernel {
  static constexpr int kThreads = 256;
  static constexpr int kPhases = 2;
  struct Shared {
    float shares[kThreads];
  };
  struct ThreadState {};

  ConvolutionExtents extents;
  const float* x;
  const float* dy;
  float* dkernel;

  int64_t blocks() const {
    return int64_t{extents.window.h.size} * extents.window.w.size * extents.group_channels *
           extents.filters;
  }

  template <int phase>
  SHOAL_HOST_DEVICE void Run(const ThreadPosition& place, Shared& shared, ThreadState&) const {
    if constexpr (phase == 0) {
      const SlidingWindow& window = extents.window;
      const PixelOfItem tap(static_cast<int32_t>(place.block / extents.filters),
                            extents.group_channels, window.h.size, window.w.size);
      const int32_t filter = static_cast<int32_t>(place.block % extents.filters);
      const int32_t channel = filter / extents.group_filters * extents.group_channels + tap.pack;
      const int64_t pixels = extents.batch * window.h.out * window.w.out;
      float sum = 0;
      for (int64_t pixel = place.thread; pixel < pixels; pixel += kThreads) {
        const int32_t out_w = static_cast<int32_t>(pixel % window.w.out);
        const int32_t out_h = static_cast<int32_t>(pixel / window.w.out % window.h.out);
        const int32_t h = window.h.Input(out_h, tap.h), w = window.w.Input(out_w, tap.w);
        if (!window.h.Inside(h) || !window.w.Inside(w)) continue;
        const int64_t image = pixel / window.w.out / window.h.out;
        sum += x[extents.XAt(image, h, w) + channel] * dy[pixel * extents.filters + filter];
      }
      shared.shares[place.thread] = sum;
    } else if (place.thread == 0) {
      double sum = 0;
      for (int i = 0; i < kThreads; ++i) sum += shared.shares[i];
      dkernel[place.block] = static_cast<float>(sum);
    }
  }
};

}  // namespace shoal::cuda
