#pragma once

#include <cstdint>

namespace shoal {

// The values that change from run to run, besides the tensors. Kernels read them when they compute,
// so that a recorded sequence of kernels runs unchanged in the next step.
struct RunContext {
  uint64_t job_seed = 0;
  uint64_t step = 0;
  int64_t first_example = 0;  // index in the step's batch; not 0 for later parts of it
  // For a device that adds up the gradients of parts: the factor of this part's gradients, and
  // whether this part is the first.
  float share = 1;
  bool begins_sums = true;
};

}  // namespace shoal
