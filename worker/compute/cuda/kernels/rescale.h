#pragma once

#include "worker/compute/cuda/kernels/fast_divisor.h"
#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/cuda/kernels/pack.h"

namespace shoal::cuda {

// RescaleOp for bytes, the usual type of pictures: y = x scale + offset, with one scale and one
// offset per channel. Bound by bandwidth, mostly that of y.
template <typename Element, int width>
struct RescaleBytesKernel {
  const uint8_t* x;
  const float* scale;   // [channels]
  const float* offset;  // [channels]
  int32_t channels;
  int64_t size;  // a multiple of width; `channels` need not be
  Element* y;

  int64_t items() const { return size / width; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const int64_t at = int64_t{item} * width;
    Pack<width> pack = Load<width>(x + at);
    int32_t channel = static_cast<int32_t>(at % channels);
    for (int i = 0; i < width; ++i) {
      pack[i] = pack[i] * scale[channel] + offset[channel];
      channel = channel + 1 == channels ? 0 : channel + 1;
    }
    Store(pack, y + at);
  }
};

// RescaleOp for neighbouring channels, at most as many as fit into a kernel's arguments. If these
// are all channels, packs may span them.
template <typename Element, int width>
struct RescaleKernel {
  static constexpr int kMaxChannels = 64;

  const float* x;
  Element* y;
  int64_t rows;
  int64_t columns;
  int64_t first;            // channel
  int32_t channels;         // channels from `first` on; all of them if width is not 1
  FastDivisor by_channels;  // `channels`
  float scale[kMaxChannels];
  float offset[kMaxChannels];

  int64_t items() const { return rows * channels / width; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    int32_t channel = item % by_channels * width % by_channels;
    const int64_t at = width == 1 ? int64_t{item / by_channels} * columns + first + channel
                                  : int64_t{item} * width;
    Pack<width> pack = Load<width>(x + at);
    for (int i = 0; i < width; ++i) {
      pack[i] = pack[i] * scale[channel] + offset[channel];
      channel = channel + 1 == channels ? 0 : channel + 1;
    }
    Store(pack, y + at);
  }
};

}  // namespace shoal::cuda
