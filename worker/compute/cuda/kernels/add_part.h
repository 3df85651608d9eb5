#pragma once

#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/cuda/kernels/pack.h"
#include "worker/compute/program/run_context.h"

namespace shoal::cuda {

// sum += share * gradient, for a part of a batch. The part that begins the sum does not read it.
// Bound by bandwidth. `context` is in the device's memory, so that a captured graph works for every
// part.
template <int width>
struct AddPartKernel {
  const RunContext* context;
  const float* gradient;
  int64_t size;  // a multiple of width
  float* sum;

  int64_t items() const { return size / width; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const int64_t at = int64_t{item} * width;
    Pack<width> result = Load<width>(gradient + at);
    for (int i = 0; i < width; ++i) result[i] *= context->share;
    if (!context->begins_sums) {
      const Pack<width> before = Load<width>(sum + at);
      for (int i = 0; i < width; ++i) result[i] += before[i];
    }
    Store(result, sum + at);
  }
};

}  // namespace shoal::cuda
