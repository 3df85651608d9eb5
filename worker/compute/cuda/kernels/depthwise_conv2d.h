#pragma once

#include "worker/compute/cuda/kernels/column_sums.h"
#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/cuda/kernels/pack.h"
#include "worker/compute/cuda/kernels/sliding_window.h"

// DepthwiseConv2DOp and its gradients: x [B, H, W, C], kernel [kh, kw, C, M] and bias [C M] in
// float, y [B, H', W', C M]. A pack is of neighbouring channels of one pixel, where M is 1; else it
// is one channel.
//
// Nine products a value are too few to be bound by arithmetic. A pixel is read from memory once;
// its neighbours' windows find it in the cache, whose bandwidth is the nearest next bound.

namespace shoal::cuda {

// How many filters a channel has: known to be one where a pack has several channels.
template <int width>
SHOAL_HOST_DEVICE int32_t Multiplier(int32_t multiplier) {
  return width == 1 ? multiplier : 1;
}

template <typename Element, int width>
struct DepthwiseConv2DKernel {
  SlidingWindow window;
  int64_t batch;
  int32_t channels;    // of x
  int32_t multiplier;  // 1 where width is not
  const Element* x;
  const float* kernel;
  const float* bias;  // null: none
  Element* y;

  int32_t filters() const { return channels * multiplier; }
  int64_t items() const { return batch * window.h.out * window.w.out * (filters() / width); }

  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const int32_t outputs = channels * Multiplier<width>(multiplier);
    const PixelOfItem at(item, outputs / width, window.h.out, window.w.out);
    const int32_t filter = at.pack * width, channel = filter / Multiplier<width>(multiplier);
    Pack<width> sum = bias == nullptr ? Pack<width>{} : Load<width>(bias + filter);
    for (int32_t kh = 0; kh < window.h.size; ++kh) {
      const int32_t h = window.h.Input(at.h, kh);
      if (!window.h.Inside(h)) continue;
      for (int32_t kw = 0; kw < window.w.size; ++kw) {
        const int32_t w = window.w.Input(at.w, kw);
        if (!window.w.Inside(w)) continue;
        const int64_t pixel = (int64_t{at.image} * window.h.in + h) * window.w.in + w;
        const Pack<width> in = Load<width>(x + pixel * channels + channel);
        const Pack<width> by = Load<width>(kernel + (kh * window.w.size + kw) * outputs + filter);
        for (int i = 0; i < width; ++i) sum[i] += in[i] * by[i];
      }
    }
    Store(sum, y + int64_t{item} * width);
  }
};

// Gathers: each pixel of dx asks which windows read it, so that nothing is added to by two threads.
template <typename Element, int width>
struct DepthwiseConv2DBackwardDataKernel {
  SlidingWindow window;
  int64_t batch;
  int32_t channels;    // of dx
  int32_t multiplier;  // 1 where width is not
  const Element* dy;
  const float* kernel;
  Element* dx;

  int64_t items() const { return batch * window.h.in * window.w.in * (channels / width); }

  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const PixelOfItem at(item, channels / width, window.h.in, window.w.in);
    const int32_t filters_of_channel = Multiplier<width>(multiplier);
    const int32_t filters = channels * filters_of_channel;
    const int32_t filter = at.pack * width * filters_of_channel;
    Pack<width> sum = {};
    const SlidingWindow::Axis::Reader first_w = window.w.FirstReader(at.w);
    for (auto h = window.h.FirstReader(at.h); h.tap < window.h.size; h = window.h.Next(h)) {
      if (!window.h.IsOutput(h.output)) continue;
      for (auto w = first_w; w.tap < window.w.size; w = window.w.Next(w)) {
        if (!window.w.IsOutput(w.output)) continue;
        const int64_t pixel =
            (int64_t{at.image} * window.h.out + h.output) * window.w.out + w.output;
        const int32_t tap = h.tap * window.w.size + w.tap;
        for (int32_t m = 0; m < filters_of_channel; ++m) {
          const Pack<width> gradient = Load<width>(dy + pixel * filters + filter + m);
          const Pack<width> by = Load<width>(kernel + tap * filters + filter + m);
          for (int i = 0; i < width; ++i) sum[i] += gradient[i] * by[i];
        }
      }
    }
    Store(sum, dx + int64_t{item} * width);
  }
};

// For dkernel: ColumnSumsKernel of these over the pixels of dy as rows and the filters as columns
// sums kTaps taps from `first_tap` on, row-major in the window, and SumOfSlicesKernel<kTaps> puts
// them where they belong; a larger window takes several rounds. Taps that there are not sum to 0.
template <typename Element, int width>
struct DepthwiseConv2DWeightTerms {
  static constexpr int kTaps = 9;
  static constexpr int kSums = kTaps;
  static constexpr int kWidth = width;
  static constexpr int kAtOnce = 1;

  SlidingWindow window;
  int32_t channels;
  int32_t multiplier;  // 1 where width is not
  const Element* x;
  const Element* dy;
  int32_t first_tap;

  SHOAL_HOST_DEVICE int32_t OfColumn(int32_t column) const { return column; }
  SHOAL_HOST_DEVICE RawPack<Element, width> Read(int64_t, int64_t at) const {
    return LoadRaw<width>(dy + at);
  }
  SHOAL_HOST_DEVICE void Add(int32_t column, const RawPack<Element, width>& values, int64_t row,
                             int64_t, Pack<width> (&sums)[kSums]) const {
    const int64_t channel = column / multiplier;
    const int32_t pixel = static_cast<int32_t>(row);
    const int32_t out_w = pixel % window.w.out, out_h = pixel / window.w.out % window.h.out;
    const int64_t image = pixel / window.w.out / window.h.out;
    const Pack<width> gradient = Unpack(values);
    const int32_t taps = window.h.size * window.w.size;
    for (int s = 0; s < kTaps; ++s) {
      const int32_t tap = first_tap + s;
      if (tap >= taps) continue;
      const int32_t h = window.h.Input(out_h, tap / window.w.size);
      const int32_t w = window.w.Input(out_w, tap % window.w.size);
      if (!window.h.Inside(h) || !window.w.Inside(w)) continue;
      const int64_t at = (image * window.h.in + h) * window.w.in + w;
      const Pack<width> in = Load<width>(x + at * channels + channel);
      for (int i = 0; i < width; ++i) sums[s][i] += in[i] * gradient[i];
    }
  }
};

// The widest pack of these sums, of which a block shares 256 for every tap.
inline constexpr int kWidestWeightPack = 4;

}  // namespace shoal::cuda
