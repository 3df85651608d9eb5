#pragma once

#include <cmath>

#include "worker/compute/cuda/kernels/kernel.h"

// Not worth packs. Still bound by bandwidth.

namespace shoal::cuda {

// GluOp: x is [rows, 2 half].
struct GluKernel {
  const float* x;
  float* y;
  int64_t half;
  int64_t count;  // of y

  int64_t items() const { return count; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const float* const at = x + item + item / half * half;
    y[item] = at[0] / (1 + std::exp(-at[half]));
  }
};

struct GluBackwardKernel {
  const float* x;
  const float* dy;
  float* dx;
  int64_t half;
  int64_t count;  // of dy

  int64_t items() const { return count; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const int64_t at = item + item / half * half;
    const float sigmoid = 1 / (1 + std::exp(-x[at + half])), gradient = dy[item];
    dx[at] = gradient * sigmoid;
    dx[at + half] = gradient * x[at] * sigmoid * (1 - sigmoid);
  }
};

}  // namespace shoal::cuda
