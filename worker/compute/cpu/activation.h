#pragma once

#include <cstdint>

#include "common/model/ops/activation.h"
#include "worker/compute/cpu/cpu_program.h"

namespace shoal::cpu {

// The value that the node at `index` leaves: its own, or that of the ReLU that goes with it.
ValueId FusedOutput(int index, const CpuProgram& program);
// Appends the ReLU that goes with the node at `index`, if any, over the node's result `y`, of any
// layout; padding of zeros stays zero. oneDNN could do it while it has y in registers, but makes 0
// of not-a-number.
void AddFusedRelu(int index, TensorId y, int64_t size_bytes, CpuProgram& program);

// Between what that ReLU leaves its values; where there is none, not-a-number, which bounds
// nothing.
struct ReluBounds {
  float least;
  float most;
};
ReluBounds FusedReluBounds(int index, const CpuProgram& program);
// What the result of a ReLU is at most; not-a-number where it has no bound.
float UpperBound(const ActivationAttributes& attributes);

// Appends the gradient of a plain ReLU (IsPlainRelu) from its result and returns where it is. All
// three tensors have one layout and `size_bytes`; padding of zeros stays zero.
TensorId AddReluBackward(const ActivationAttributes& attributes, TensorId y, TensorId dy,
                         int64_t size_bytes, CpuProgram& program);

}  // namespace shoal::cpu
