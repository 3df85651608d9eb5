#pragma once

#include <cstdint>
#include <numeric>
#include <utility>

#include "common/model/ops/window.h"
#include "worker/compute/cuda/kernels/fast_divisor.h"
#include "worker/compute/op_math/host_device.h"

namespace shoal::cuda {

// A window that slides over images [B, H, W, C] and makes [B, H', W', ...]: a Window with its
// extents, in plain numbers. Padding before and after may differ.
struct SlidingWindow {
  struct Axis {
    int32_t size;
    int32_t stride;
    int32_t dilation;
    int32_t before;  // padding
    int32_t in;
    int32_t out;
    // The steps from one tap that reads an input to the next such tap, and between their windows.
    int32_t tap_step;
    int32_t output_step;
    FastDivisor by_in;      // divides by `in`
    FastDivisor by_out;     // divides by `out`
    FastDivisor by_stride;  // divides by `stride`

    // The input that tap `tap` of the window at `output` reads. It is outside the image if it is,
    // as an unsigned number, not below `in`.
    SHOAL_HOST_DEVICE int32_t Input(int32_t output, int32_t tap) const {
      return output * stride + tap * dilation - before;
    }
    SHOAL_HOST_DEVICE bool Inside(int32_t input) const {
      return static_cast<uint32_t>(input) < static_cast<uint32_t>(in);
    }
    // The window whose tap `tap` reads `input`; -1 if there is none.
    SHOAL_HOST_DEVICE int32_t Output(int32_t input, int32_t tap) const {
      const int32_t shifted = input + before - tap * dilation;
      if (shifted < 0 || shifted % stride != 0) return -1;
      const int32_t output = shifted / stride;
      return output < out ? output : -1;
    }
    // A tap and the window that reads an input with it.
    struct Reader {
      int32_t tap;
      int32_t output;  // may not exist: see IsOutput
    };
    // Returns the first tap that reads `input`, or one past the last tap. Next returns the others.
    // Only the first call divides: a division per tap would cost more than the work for the tap.
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
    // The first tap of the window at `output` that is inside the image; `size` if none is.
    SHOAL_HOST_DEVICE int32_t FirstInside(int32_t output) const {
      int32_t tap = 0;
      while (tap < size && !Inside(Input(output, tap))) ++tap;
      return tap;
    }
    // The number of taps of the window at `output` that are inside the image.
    SHOAL_HOST_DEVICE int32_t InsideTaps(int32_t output) const {
      int32_t inside = 0;
      for (int32_t tap = 0; tap < size; ++tap) inside += Inside(Input(output, tap));
      return inside;
    }
  };

  // For images with this shape.
  SlidingWindow(const Window& window, const Shape& image)
      : h(AxisOf(window, 0, image[1])), w(AxisOf(window, 1, image[2])) {}

  // Returns the window that maps the outputs of this one to its inputs: at each input it visits the
  // windows that read it, those with the last tap first. Requires strides of 1.
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
            .by_in = FastDivisor(static_cast<int32_t>(in)),
            .by_out = FastDivisor(static_cast<int32_t>(window.OutputExtent(axis, in))),
            .by_stride = FastDivisor(stride)};
  }
};

// The pixel and pack of an item, if consecutive items are consecutive packs of [B, h, w, C]. Each
// extent is a number or a FastDivisor.
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
