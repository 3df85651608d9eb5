#pragma once

#include <type_traits>

#include "worker/compute/cuda/kernels/column_sums.h"
#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/cuda/kernels/pack.h"
#include "worker/compute/cuda/kernels/sliding_window.h"

// DepthwiseConv2DOp and its gradients: x [B, H, W, C], kernel [kh, kw, C, M] and bias [C M] in
// float, y [B, H', W', C M]. If M is 1, a pack has neighbouring channels of one pixel; otherwise it
// has one channel.
//
// Nine products per value are too few to be bound by arithmetic. A pixel is read from memory once;
// the windows of its neighbours find it in the cache. The bandwidth of the cache is the next bound.

namespace shoal::cuda {

// Filters per channel: known to be one if a pack has several channels.
template <int width>
SHOAL_HOST_DEVICE int32_t Multiplier(int32_t multiplier) {
  return width == 1 ? multiplier : 1;
}

template <typename Element, int width>
struct DepthwiseConv2DKernel {
  SlidingWindow window;
  int64_t batch;
  int32_t channels;    // of x
  int32_t multiplier;  // 1 if width is not 1
  const Element* x;
  const float* kernel;
  const float* bias;  // null: none
  Element* y;

  int32_t filters() const { return channels * multiplier; }
  int64_t items() const { return batch * window.h.out * window.w.out * (filters() / width); }

  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const int32_t outputs = channels * Multiplier<width>(multiplier);
    const PixelOfItem at(item, outputs / width, window.h.by_out, window.w.by_out);
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

// The same for windows of width three, without dilation, with one filter per channel: the layers of
// MobileNets. A thread has some neighbouring pixels of a line. It reads the x values of all their
// windows in a line once, and the filter once. Otherwise a pixel reads 18 packs of four of the
// filter and 9 of x, and the nearest cache delivers them at only two thirds of the memory's
// bandwidth.
template <typename Element, int width, int stride>
struct DepthwiseLinesKernel {
  static constexpr int kPixels = 4;
  static constexpr int kTaps = 3;
  static constexpr int kColumns = (kPixels - 1) * stride + kTaps;

  SlidingWindow window;
  int64_t batch;
  int32_t channels;
  bool reversed;  // starts with the filter's last tap
  const Element* x;
  const float* kernel;
  const float* bias;  // null: none
  Element* y;

  SHOAL_HOST_DEVICE int32_t groups() const { return (window.w.out + kPixels - 1) / kPixels; }
  int64_t items() const { return batch * window.h.out * groups() * (channels / width); }

  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const PixelOfItem at(item, channels / width, window.h.by_out, groups());
    const int32_t channel = at.pack * width;
    const int32_t first_out = at.w * kPixels, first_in = first_out * stride - window.w.before;
    Pack<width> sums[kPixels];
    SHOAL_UNROLL
    for (int p = 0; p < kPixels; ++p) {
      sums[p] = bias == nullptr ? Pack<width>{} : Load<width>(bias + channel);
    }
    for (int32_t kh = 0; kh < window.h.size; ++kh) {
      const int32_t h = window.h.Input(at.h, kh);
      if (!window.h.Inside(h)) continue;
      const int64_t first = (int64_t{at.image} * window.h.in + h) * window.w.in + first_in;
      const Element* const from = x + (first * channels + channel);
      RawPack<Element, width> in[kColumns] = {};
      SHOAL_UNROLL
      for (int c = 0; c < kColumns; ++c) {
        if (window.w.Inside(first_in + c)) in[c] = LoadRaw<width>(from + int64_t{c} * channels);
      }
      SHOAL_UNROLL
      for (int kw = 0; kw < kTaps; ++kw) {
        const int32_t tap = kh * kTaps + kw, last = window.h.size * kTaps - 1;
        const Pack<width> by =
            Load<width>(kernel + (reversed ? last - tap : tap) * channels + channel);
        SHOAL_UNROLL
        for (int p = 0; p < kPixels; ++p) {
          const Pack<width> values = Unpack(in[p * stride + kw]);
          for (int i = 0; i < width; ++i) sums[p][i] += values[i] * by[i];
        }
      }
    }
    const int64_t first = (int64_t{at.image} * window.h.out + at.h) * window.w.out + first_out;
    SHOAL_UNROLL
    for (int p = 0; p < kPixels; ++p) {
      if (first_out + p < window.w.out) Store(sums[p], y + (first + p) * channels + channel);
    }
  }
};

// Calls use(stride), as a constant, if DepthwiseLinesKernel supports the convolution; else use(0).
template <typename Use>
void WithLines(const SlidingWindow& window, int32_t multiplier, const Use& use) {
  const bool takes = window.w.size == 3 && window.w.dilation == 1 && multiplier == 1;
  if (takes && window.w.stride == 1) return use(std::integral_constant<int, 1>());
  if (takes && window.w.stride == 2) return use(std::integral_constant<int, 2>());
  use(std::integral_constant<int, 0>());
}

// Whether DepthwiseLinesKernel also supports the gradient of x. Without strides that is the
// convolution of dy with the reversed filter, by window.Transposed().
inline bool LinesSupportInputGradient(const SlidingWindow& window, int32_t multiplier) {
  return window.w.size == 3 && window.w.dilation == 1 && window.w.stride == 1 &&
         window.h.stride == 1 && multiplier == 1;
}

// Gathers: each pixel of dx looks for the windows that read it, so that no two threads add to one
// value.
template <typename Element, int width>
struct DepthwiseConv2DBackwardDataKernel {
  SlidingWindow window;
  int64_t batch;
  int32_t channels;    // of dx
  int32_t multiplier;  // 1 if width is not 1
  const Element* dy;
  const float* kernel;
  Element* dx;

  int64_t items() const { return batch * window.h.in * window.w.in * (channels / width); }

  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const PixelOfItem at(item, channels / width, window.h.by_in, window.w.by_in);
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

// The terms of dkernel. ColumnSumsKernel, with the pixels of dy as rows and the filters as columns,
// sums kTaps taps from `first_tap` on, row-major in the window. SumOfSlicesKernel<kTaps> then
// stores them in place. A larger window takes several rounds. Missing taps sum to 0.
//
// All factors of a pixel are in flight before the first product. The only divisions are those that
// find the pixel.
template <typename Element, int width>
struct DepthwiseConv2DWeightTerms {
  static constexpr int kTaps = 9;
  static constexpr int kSums = kTaps;
  static constexpr int kWidth = width;
  static constexpr int kAtOnce = 1;

  SlidingWindow window;
  int32_t channels;
  int32_t multiplier;  // 1 if width is not 1
  const Element* x;
  const Element* dy;
  int32_t first_tap;

  // The position of a tap relative to the window's first.
  struct Tap {
    int32_t h, w;
    int32_t offset;  // in elements
  };
  struct Column {
    int32_t channel;
    Tap taps[kTaps];
  };
  struct Values {
    RawPack<Element, width> gradient;
    RawPack<Element, width> in[kTaps];
  };

  SHOAL_HOST_DEVICE Column OfColumn(int32_t column) const {
    Column of_column = {column / Multiplier<width>(multiplier), {}};
    int32_t h = first_tap / window.w.size, w = first_tap % window.w.size;
    SHOAL_UNROLL
    for (int s = 0; s < kTaps; ++s) {
      constexpr int32_t kOutside = -(1 << 30);
      Tap& tap = of_column.taps[s];
      tap.h = h < window.h.size ? h * window.h.dilation : kOutside;
      tap.w = w * window.w.dilation;
      tap.offset = (h * window.h.dilation * window.w.in + tap.w) * channels;
      if (++w == window.w.size) {
        w = 0;
        ++h;
      }
    }
    return of_column;
  }
  SHOAL_HOST_DEVICE Values Read(const Column& of_column, int64_t row, int64_t at) const {
    const int32_t pixel = static_cast<int32_t>(row), line = pixel / window.w.by_out;
    const int32_t image = line / window.h.by_out;
    const int32_t w = window.w.Input(pixel - line * window.w.out, 0);
    const int32_t h = window.h.Input(line - image * window.h.out, 0);
    const int64_t first = (int64_t{image} * window.h.in + h) * window.w.in + w;
    const int64_t from = first * channels + of_column.channel;
    Values values = {LoadRaw<width>(dy + at), {}};
    SHOAL_UNROLL
    for (int s = 0; s < kTaps; ++s) {
      const Tap& tap = of_column.taps[s];
      if (window.h.Inside(h + tap.h) && window.w.Inside(w + tap.w)) {
        values.in[s] = LoadRaw<width>(x + (from + tap.offset));
      }
    }
    return values;
  }
  SHOAL_HOST_DEVICE void Add(const Column&, const Values& values, int64_t, int64_t,
                             Pack<width> (&sums)[kSums]) const {
    const Pack<width> gradient = Unpack(values.gradient);
    SHOAL_UNROLL
    for (int s = 0; s < kTaps; ++s) {
      const Pack<width> in = Unpack(values.in[s]);
      for (int i = 0; i < width; ++i) sums[s][i] += in[i] * gradient[i];
    }
  }
};

// The widest pack of these sums: a block shares 256 packs for every tap.
inline constexpr int kWidestWeightPack = 4;

}  // namespace shoal::cuda
