#pragma once

#include <cstdint>
#include <numeric>
#include <utility>

#include "common/model/ops/window.h"
#include "worker/compute/cuda/kernels/divisor.h"
#include "worker/compute/host_device.h"

namespace shoal::cuda {

// A window that slides over images [B, H, W, C] and makes [B, H', W', ...] of them: Window with the
// extents, in plain numbers. Zeros before and after need not be equal.
struct SlidingWindow {
  struct Axis {
    int32_t size;
    int32_t stride;
    int32_t dilation;
    int32_t before;  // zeros
    int32_t in;
    int32_t out;
    // From a tap by which an input is read to the next one, and between their windows.
    int32_t tap_step;
    int32_t output_step;
    Divisor by_in;      // `in`, to divide by
    Divisor by_out;     // likewise
    Divisor by_stride;  // likewise

    // Where tap `tap` of the window at `output` reads; outside the image where that is not below
    // `in` as an unsigned number.
    SHOAL_HOST_DEVICE int32_t Input(int32_t output, int32_t tap) const {
      return output * stride + tap * dilation - before;
    }
    SHOAL_HOST_DEVICE bool Inside(int32_t input) const {
      return static_cast<uint32_t>(input) < static_cast<uint32_t>(in);
    }
    // The window whose tap `tap` reads `input`; -1 where there is none.
    SHOAL_HOST_DEVICE int32_t Output(int32_t input, int32_t tap) const {
      const int32_t shifted = input + before - tap * dilation;
      if (shifted < 0 || shifted % stride != 0) return -1;
      const int32_t output = shifted / stride;
      return output < out ? output : -1;
    }
    // A tap and the window that reads some input by it.
    struct Reader {
      int32_t tap;
      int32_t output;  // perhaps one that there is not: IsOutput
    };
    // The first tap by which `input` is read, or one past the last. Next gives the others, and
    // neither divides but once, which is for every tap more work than what is done with it.
    SHOAL_HOST_DEVICE Reader FirstReader(int32_t input) const {
      const int32_t shifted = input + before;
      if (dilation == 1) return {shifted % by_stride, shifted / by_stride};
      for (int32_t tap = 0; tap < tap_step; ++tap) {
        const int32_t rest = shifted - tap * dilation;
        if (rest % stride == 0) return {tap, rest / stride};
      }
      return {size, -1};
    }
    SHOAL_HOST_DEVICE Reader Next(const Reader& reader) const {
      return {reader.tap + tap_step, reader.output - output_step};
    }
    SHOAL_HOST_DEVICE bool IsOutput(int32_t output) const {
      return static_cast<uint32_t>(output) < static_cast<uint32_t>(out);
    }
    // The first tap of the window at `output` that is inside; `size` where none is.
    SHOAL_HOST_DEVICE int32_t FirstInside(int32_t output) const {
      int32_t tap = 0;
      while (tap < size && !Inside(Input(output, tap))) ++tap;
      return tap;
    }
    // The taps of the window at `output` that are inside.
    SHOAL_HOST_DEVICE int32_t InsideTaps(int32_t output) const {
      int32_t inside = 0;
      for (int32_t tap = 0; tap < size; ++tap) inside += Inside(Input(output, tap));
      return inside;
    }
  };

  // Of images with this shape.
  SlidingWindow(const Window& window, const Shape& image)
      : h(AxisOf(window, 0, image[1])), w(AxisOf(window, 1, image[2])) {}

  // The one that reads the outputs of this one, whose strides are 1, and gives its inputs: at each
  // input there are the windows that read it, those by the last tap first.
  SlidingWindow Transposed() const {
    SlidingWindow transposed = *this;
    for (Axis* const axis : {&transposed.h, &transposed.w}) {
      axis->before = (axis->size - 1) * axis->dilation - axis->before;
      std::swap(axis->in, axis->out);
      std::swap(axis->by_in, axis->by_out);
    }
    return transposed;
  }

  Axis h;
  Axis w;

 private:
  static Axis AxisOf(const Window& window, int axis, int64_t in) {
    const auto stride = static_cast<int32_t>(window.strides[axis]);
    const auto dilation = static_cast<int32_t>(window.dilation[axis]);
    return {.size = static_cast<int32_t>(window.size[axis]),
            .stride = stride,
            .dilation = dilation,
            .before = static_cast<int32_t>(window.PaddingBefore(axis, in)),
            .in = static_cast<int32_t>(in),
            .out = static_cast<int32_t>(window.OutputExtent(axis, in)),
            .tap_step = stride / std::gcd(stride, dilation),
            .output_step = dilation / std::gcd(stride, dilation),
            .by_in = Divisor(static_cast<int32_t>(in)),
            .by_out = Divisor(static_cast<int32_t>(window.OutputExtent(axis, in))),
            .by_stride = Divisor(stride)};
  }
};

// Which pack of a pixel an item is, where consecutive items are consecutive packs of [B, h, w, C].
// Extents are numbers, or a Divisor each.
struct PixelOfItem {
  template <typename Packs, typename Height, typename Width>
  SHOAL_HOST_DEVICE PixelOfItem(int32_t item, const Packs& packs, const Height& height,
                                const Width& width) {
    pack = item % packs;
    const int32_t pixel = item / packs;
    w = pixel % width;
    h = pixel / width % height;
    image = pixel / width / height;
  }

  int32_t image, h, w, pack;
};

}  // namespace shoal::cuda
