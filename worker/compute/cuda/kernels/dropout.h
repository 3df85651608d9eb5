#pragma once

#include "common/model/ops/dropout.h"
#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/op_math/dropout_mask.h"
#include "worker/compute/program/run_context.h"

// Not worth packs. Still bound by bandwidth.

namespace shoal::cuda {

// DropoutOp in training, and its gradient, with the random numbers that all backends use. `context`
// is in the device's memory.
struct DropoutKernel {
  const RunContext* context;
  uint64_t layer_seed;
  double rate;
  DropoutGroups groups;
  int64_t example_size;  // elements
  const float* x;
  float* y;
  int64_t count;

  int64_t items() const { return count; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const DropoutMask mask(*context, layer_seed, rate);
    const int64_t element = context->first_example * example_size + item;
    // DropoutGroups::Of
    const int64_t group = element / groups.block * groups.period + element % groups.period;
    y[item] = x[item] * mask.Factor<float>(group);
  }
};

}  // namespace shoal::cuda
