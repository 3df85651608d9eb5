#pragma once

#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/cuda/kernels/pack.h"

namespace shoal::cuda {

// y = x, converted to another type. Bound by bandwidth.
template <typename From, typename To, int width>
struct CastKernel {
  const From* x;
  To* y;
  int64_t size;  // a multiple of width

  int64_t items() const { return size / width; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const int64_t at = int64_t{item} * width;
    Store(Load<width>(x + at), y + at);
  }
};

}  // namespace shoal::cuda
