#pragma once

#include <cstdint>

namespace shoal {

// What differs from one run to the next beside the tensors. Kernels read it where they compute, so
// that a recorded sequence of them runs unchanged in the next step.
struct RunContext {
  uint64_t job_seed = 0;
  uint64_t step = 0;
  int64_t first_example = 0;  // of the step's batch, where only a part of it is computed
  // Of one of the parts whose gradients a device adds up: what its own are multiplied by, and
  // whether it is the first of them.
  float share = 1;
  bool begins_sums = true;
};

}  // namespace shoal
