#pragma once

#include <cmath>

#include "worker/compute/cuda/kernels/fast_divisor.h"
#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/cuda/kernels/pack.h"
#include "worker/compute/cuda/kernels/sliding_window.h"

// Pool2DOp, the average and the maximum over windows of [B, H, W, C], and their gradients. Padding
// before and after may differ; it does not count as elements of a window. A thread has a pack of
// neighbouring channels of one pixel. Bound by bandwidth: windows share their overlap in the cache.
//
// In training, forward stores for each maximum the tap from which the window took it: one byte if a
// window has at most 256 taps. Backward reads the taps and dy instead of the images, which are four
// times as large with strides of 2.

namespace shoal::cuda {

// Calls use(tap) with a value of the smallest type that can number the taps of this window.
template <typename Use>
void WithTap(const SlidingWindow& window, const Use& use) {
  if (int64_t{window.h.size} * window.w.size <= 256) {
    use(uint8_t{});
  } else {
    use(uint32_t{});
  }
}

// Of equal maxima the first counts. Not-a-number is the largest; of several the last counts.
template <typename Element, typename Tap, int width>
struct MaxPool2DKernel {
  // In a line of a window; the number of loads in flight before the first wait.
  static constexpr int kAtOnce = 3;

  SlidingWindow window;
  int64_t batch;
  int32_t channels;
  FastDivisor by_packs;  // divides by channels / width
  const Element* x;
  Element* y;
  Tap* taps;  // like y; null: do not store

  int64_t items() const { return batch * window.h.out * window.w.out * (channels / width); }

  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const PixelOfItem at(item, by_packs, window.h.by_out, window.w.by_out);
    const int32_t first_h = window.h.FirstInside(at.h), first_w = window.w.FirstInside(at.w);
    Pack<width> largest;
    int32_t tap_of[width];
    for (int i = 0; i < width; ++i) {
      largest[i] = -INFINITY;
      tap_of[i] = first_h * window.w.size + first_w;  // if all are infinite
    }
    for (int32_t kh = first_h; kh < window.h.size; ++kh) {
      const int32_t h = window.h.Input(at.h, kh);
      if (!window.h.Inside(h)) break;
      const int64_t line = (int64_t{at.image} * window.h.in + h) * window.w.in * channels;
      const Element* const from = x + line + at.pack * width;
      for (int32_t kw = first_w; kw < window.w.size; kw += kAtOnce) {
        RawPack<Element, width> raw[kAtOnce];
        bool inside[kAtOnce];
        for (int i = 0; i < kAtOnce; ++i) {
          const int32_t w = window.w.Input(at.w, kw + i);
          inside[i] = kw + i < window.w.size && window.w.Inside(w);
          if (inside[i]) raw[i] = LoadRaw<width>(from + int64_t{w} * channels);
        }
        for (int i = 0; i < kAtOnce; ++i) {
          if (inside[i]) Enter(Unpack(raw[i]), kh * window.w.size + kw + i, largest, tap_of);
        }
      }
    }
    Store(largest, y + int64_t{item} * width);
    if (taps == nullptr) return;
    Tap numbers[width];
    for (int i = 0; i < width; ++i) numbers[i] = static_cast<Tap>(tap_of[i]);
    RawPack<Tap, width> raw;
    memcpy(raw.words, numbers, sizeof(numbers));
    StoreRaw(raw, taps + int64_t{item} * width);
  }

 private:
  SHOAL_HOST_DEVICE static void Enter(const Pack<width>& in, int32_t tap, Pack<width>& largest,
                                      int32_t (&tap_of)[width]) {
    for (int i = 0; i < width; ++i) {
      const bool larger = in[i] > largest[i] || in[i] != in[i];
      largest[i] = larger ? in[i] : largest[i];
      tap_of[i] = larger ? tap : tap_of[i];
    }
  }
};

// Gathers: each pixel of dx looks for the windows that read it and adds the gradients of those
// whose maximum it is. So no two threads add to one value.
template <typename Element, typename Tap, int width>
struct MaxPool2DBackwardKernel {
  // In a line of windows; more than two read a pixel only if they overlap by more than half.
  static constexpr int kAtOnce = 2;

  SlidingWindow window;
  int64_t batch;
  int32_t channels;
  FastDivisor by_packs;  // divides by channels / width
  const Tap* taps;       // MaxPool2DKernel's
  const Element* dy;
  Element* dx;

  int64_t items() const { return batch * window.h.in * window.w.in * (channels / width); }

  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const PixelOfItem at(item, by_packs, window.h.by_in, window.w.by_in);
    Pack<width> sum = {};
    const SlidingWindow::Axis::Reader first_w = window.w.FirstReader(at.w);
    for (auto by_h = window.h.FirstReader(at.h); by_h.tap < window.h.size;
         by_h = window.h.Next(by_h)) {
      if (!window.h.IsOutput(by_h.output)) continue;
      const int64_t line =
          (int64_t{at.image} * window.h.out + by_h.output) * window.w.out * channels +
          at.pack * width;
      for (auto by_w = first_w; by_w.tap < window.w.size;) {
        RawPack<Tap, width> numbers[kAtOnce];
        RawPack<Element, width> gradients[kAtOnce];
        int32_t tap[kAtOnce];
        for (int i = 0; i < kAtOnce; ++i, by_w = window.w.Next(by_w)) {
          const bool reads = by_w.tap < window.w.size && window.w.IsOutput(by_w.output);
          tap[i] = reads ? by_h.tap * window.w.size + by_w.tap : -1;
          if (!reads) continue;
          const int64_t element = line + int64_t{by_w.output} * channels;
          numbers[i] = LoadRaw<width>(taps + element);
          gradients[i] = LoadRaw<width>(dy + element);
        }
        for (int i = 0; i < kAtOnce; ++i) {
          if (tap[i] >= 0) AddOfTap(tap[i], numbers[i], Unpack(gradients[i]), sum);
        }
      }
    }
    Store(sum, dx + int64_t{item} * width);
  }

 private:
  // Compares in words, so that a device need not unpack them.
  SHOAL_HOST_DEVICE static void AddOfTap(int32_t tap, const RawPack<Tap, width>& numbers,
                                         const Pack<width>& gradient, Pack<width>& sum) {
    using Word = typename RawPack<Tap, width>::Word;
    constexpr int kTapBits = 8 * sizeof(Tap), kOfWord = sizeof(Word) / sizeof(Tap);
    constexpr uint32_t kMask = static_cast<Tap>(-1), kRepeat = static_cast<Word>(-1) / kMask;
    const uint32_t everywhere = static_cast<uint32_t>(tap) * kRepeat;
    for (int i = 0; i < width; ++i) {
      const uint32_t differs =
          (numbers.words[i / kOfWord] ^ everywhere) & (kMask << (i % kOfWord * kTapBits));
      if (differs == 0) sum[i] += gradient[i];
    }
  }
};

template <typename Element, int width>
struct AveragePool2DKernel {
  SlidingWindow window;
  int64_t batch;
  int32_t channels;
  FastDivisor by_packs;  // divides by channels / width
  const Element* x;
  Element* y;

  int64_t items() const { return batch * window.h.out * window.w.out * (channels / width); }

  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const PixelOfItem at(item, by_packs, window.h.by_out, window.w.by_out);
    Pack<width> sum = {};
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
        for (int i = 0; i < width; ++i) sum[i] += in[i];
      }
    }
    for (int i = 0; i < width; ++i) sum[i] /= inside;
    Store(sum, y + int64_t{item} * width);
  }
};

// Gathers, like MaxPool2DBackwardKernel.
template <typename Element, int width>
struct AveragePool2DBackwardKernel {
  SlidingWindow window;
  int64_t batch;
  int32_t channels;
  FastDivisor by_packs;  // divides by channels / width
  const Element* dy;
  Element* dx;

  int64_t items() const { return batch * window.h.in * window.w.in * (channels / width); }

  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const PixelOfItem at(item, by_packs, window.h.by_in, window.w.by_in);
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
        const Pack<width> gradient = Load<width>(dy + pixel * channels + at.pack * width);
        const float inside = static_cast<float>(window.h.InsideTaps(h) * window.w.InsideTaps(w));
        for (int i = 0; i < width; ++i) sum[i] += gradient[i] / inside;
      }
    }
    Store(sum, dx + int64_t{item} * width);
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
