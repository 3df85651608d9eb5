#pragma once

#include "common/model/ops/random_uniform.h"
#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/op_math/step_random.h"
#include "worker/compute/program/run_context.h"

// Not worth packs. Still bound by bandwidth.

namespace shoal::cuda {

// Random number `number` of each example of a RandomUniformOp.
struct RandomUniformKernel {
  const RunContext* context;
  uint64_t layer_seed;
  RandomUniformOp::Range range;
  bool whole;
  bool one_of_batch;
  int64_t number;
  int64_t numbers;  // per example
  float* y;         // [examples, numbers]
  int64_t examples;

  int64_t items() const { return examples; }
  SHOAL_HOST_DEVICE void operator()(int32_t example) const {
    const StepRandom random(*context, layer_seed);
    const int64_t first = one_of_batch ? 0 : (context->first_example + example) * numbers;
    y[example * numbers + number] = UniformIn(range, whole, random.Bits(first + number));
  }
};

}  // namespace shoal::cuda
