#pragma once

#include <cmath>

#include "common/model/ops/pool2d.h"
#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/cuda/kernels/pack.h"
#include "worker/compute/cuda/kernels/sliding_window.h"

// Pool2DOp, the average and the maximum over windows of [B, H, W, C], and their gradients; zeros
// before and after need not be equal, and are no elements of a window. A thread has a pack of
// neighbouring channels of one pixel. Bound by bandwidth: what windows share is in the cache.

namespace shoal::cuda {

template <typename Element, int width>
struct Pool2DKernel {
  Pool2DOp::Kind kind;
  SlidingWindow window;
  int64_t batch;
  int32_t channels;
  const Element* x;
  Element* y;

  int64_t items() const { return batch * window.h.out * window.w.out * (channels / width); }

  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const bool average = kind == Pool2DOp::Kind::kAverage;
    const PixelOfItem at(item, channels / width, window.h.by_out, window.w.by_out);
    Pack<width> result;
    for (int i = 0; i < width; ++i) result[i] = average ? 0 : -INFINITY;
    int32_t inside = 0;
    for (int32_t kh = 0; kh < window.h.size; ++kh) {
      const int32_t h = window.h.Input(at.h, kh);
      if (!window.h.Inside(h)) continue;
      for (int32_t kw = 0; kw < window.w.size; ++kw) {
        const int32_t w = window.w.Input(at.w, kw);
        if (!window.w.Inside(w)) continue;
        ++inside;
        const int64_t pixel = (int64_t{at.image} * window.h.in + h) * window.w.in + w;
        const Pack<width> in = Load<width>(x + pixel * channels + at.pack * width);
        for (int i = 0; i < width; ++i) {
          if (average) {
            result[i] += in[i];
          } else if (in[i] > result[i] || in[i] != in[i]) {
            result[i] = in[i];
          }
        }
      }
    }
    if (average) {
      for (int i = 0; i < width; ++i) result[i] /= inside;
    }
    Store(result, y + int64_t{item} * width);
  }
};

// Gathers: each pixel of dx asks which windows read it, so that nothing is added to by two threads.
// Of a maximum it gets the gradients of the windows whose first maximum it is: it looks for an
// earlier one, in all channels of a pack at once, only where it is one itself, and no index has to
// be kept from forward.
template <typename Element, int width>
struct Pool2DBackwardKernel {
  Pool2DOp::Kind kind;
  SlidingWindow window;
  int64_t batch;
  int32_t channels;
  const Element* x;  // x and y: of a maximum
  const Element* y;
  const Element* dy;
  Element* dx;

  int64_t items() const { return batch * window.h.in * window.w.in * (channels / width); }

  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const bool average = kind == Pool2DOp::Kind::kAverage;
    const PixelOfItem at(item, channels / width, window.h.by_in, window.w.by_in);
    const Pack<width> in = average ? Pack<width>{} : Load<width>(x + int64_t{item} * width);
    Pack<width> sum = {};
    const SlidingWindow::Axis::Reader first_w = window.w.FirstReader(at.w);
    for (auto by_h = window.h.FirstReader(at.h); by_h.tap < window.h.size;
         by_h = window.h.Next(by_h)) {
      const int32_t h = by_h.output;
      if (!window.h.IsOutput(h)) continue;
      for (auto by_w = first_w; by_w.tap < window.w.size; by_w = window.w.Next(by_w)) {
        const int32_t w = by_w.output;
        if (!window.w.IsOutput(w)) continue;
        const int64_t pixel = (int64_t{at.image} * window.h.out + h) * window.w.out + w;
        const int64_t element = pixel * channels + at.pack * width;
        const Pack<width> gradient = Load<width>(dy + element);
        if (average) {
          const float inside = static_cast<float>(window.h.InsideTaps(h) * window.w.InsideTaps(w));
          for (int i = 0; i < width; ++i) sum[i] += gradient[i] / inside;
          continue;
        }
        const Pack<width> largest = Load<width>(y + element);
        uint32_t are_first = 0;  // a bit a channel
        for (int i = 0; i < width; ++i) are_first |= uint32_t{in[i] == largest[i]} << i;
        if (are_first != 0) are_first &= ~Earlier(at, by_h, by_w, largest);
        for (int i = 0; i < width; ++i) {
          if ((are_first >> i & 1) != 0) sum[i] += gradient[i];
        }
      }
    }
    Store(sum, dx + int64_t{item} * width);
  }

 private:
  // In which channels the window has `largest` at an earlier tap, too.
  SHOAL_HOST_DEVICE uint32_t Earlier(const PixelOfItem& at, const SlidingWindow::Axis::Reader& by_h,
                                     const SlidingWindow::Axis::Reader& by_w,
                                     const Pack<width>& largest) const {
    uint32_t found = 0;
    for (int32_t kh = 0; kh <= by_h.tap; ++kh) {
      const int32_t h = window.h.Input(by_h.output, kh);
      if (!window.h.Inside(h)) continue;
      const int32_t end = kh < by_h.tap ? window.w.size : by_w.tap;
      for (int32_t kw = 0; kw < end; ++kw) {
        const int32_t w = window.w.Input(by_w.output, kw);
        if (!window.w.Inside(w)) continue;
        const int64_t pixel = (int64_t{at.image} * window.h.in + h) * window.w.in + w;
        const Pack<width> other = Load<width>(x + pixel * channels + at.pack * width);
        for (int i = 0; i < width; ++i) found |= uint32_t{other[i] == largest[i]} << i;
      }
    }
    return found;
  }
};

// GlobalAveragePool2DOp: [B, pixels, C] -> [B, C].
template <typename Element, int width>
struct GlobalAveragePool2DKernel {
  int64_t batch;
  int32_t pixels;
  int32_t channels;
  const Element* x;
  Element* y;

  int64_t items() const { return batch * (channels / width); }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const int32_t packs = channels / width;
    const int64_t first = int64_t{item / packs} * pixels;
    Pack<width> sum = {};
    for (int32_t pixel = 0; pixel < pixels; ++pixel) {
      const Pack<width> in = Load<width>(x + (first + pixel) * channels + item % packs * width);
      for (int i = 0; i < width; ++i) sum[i] += in[i];
    }
    for (int i = 0; i < width; ++i) sum[i] /= static_cast<float>(pixels);
    Store(sum, y + int64_t{item} * width);
  }
};

template <typename Element, int width>
struct GlobalAveragePool2DBackwardKernel {
  int64_t batch;
  int32_t pixels;
  int32_t channels;
  const Element* dy;
  Element* dx;

  int64_t items() const { return batch * pixels * (channels / width); }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const PixelOfItem at(item, channels / width, 1, pixels);
    Pack<width> gradient = Load<width>(dy + int64_t{at.image} * channels + at.pack * width);
    for (int i = 0; i < width; ++i) gradient[i] /= static_cast<float>(pixels);
    Store(gradient, dx + int64_t{item} * width);
  }
};

}  // namespace shoal::cuda
