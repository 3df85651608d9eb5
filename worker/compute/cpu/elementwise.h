#pragma once

#include <cstdint>

#include "common/model/ops.h"
#include "worker/compute/cpu/cpu_program.h"

namespace shoal::cpu {

// Appends the gradient of a plain ReLU (IsPlainRelu) from its result and returns where it is. All
// three tensors have one layout and `size_bytes`; padding of zeros stays zero.
TensorId AddReluBackward(const ActivationAttributes& attributes, TensorId y, TensorId dy,
                         int64_t size_bytes, CpuProgram& program);

}  // namespace shoal::cpu
