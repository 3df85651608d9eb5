#pragma once

#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/cuda/kernels/pack.h"
#include "worker/compute/op_math/activation_functions.h"

// Bound by bandwidth: a kernel reads or writes every tensor once, in packs.

namespace shoal::cuda {

// ActivationOp: y = f(x). `y` may be `x`.
template <typename Element, int width>
struct ActivationKernel {
  const Element* x;
  Element* y;
  int64_t size;  // a multiple of width
  ActivationAttributes attributes;

  int64_t items() const { return size / width; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const int64_t at = int64_t{item} * width;
    Pack<width> pack = Load<width>(x + at);
    for (int i = 0; i < width; ++i) pack[i] = Activate(attributes, pack[i]);
    Store(pack, y + at);
  }
};

// ActivationBackwardOp: dx = f'(x) dy. `dx` may be `dy`.
template <typename Element, int width>
struct ActivationBackwardKernel {
  const Element* x;
  const Element* y;
  const Element* dy;
  Element* dx;
  int64_t size;
  ActivationAttributes attributes;

  int64_t items() const { return size / width; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const int64_t at = int64_t{item} * width;
    const Pack<width> in = Load<width>(x + at), out = Load<width>(y + at);
    Pack<width> gradient = Load<width>(dy + at);
    for (int i = 0; i < width; ++i) {
      gradient[i] *= ActivationDerivative(attributes, in[i], out[i]);
    }
    Store(gradient, dx + at);
  }
};

}  // namespace shoal::cuda
