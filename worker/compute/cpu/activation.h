#pragma once

#include <cstdint>

#include "common/model/ops/activation.h"
#include "worker/compute/cpu/cpu_program.h"

namespace shoal::cpu {

// The output value of the node at `index`: its own, or that of its fused ReLU.
ValueId FusedOutput(int index, const CpuProgram& program);
// Appends the fused ReLU of the node at `index`, if any, on the node's result `y` of any layout.
// Zeros of padding stay zero. oneDNN could apply it in registers, but would turn not-a-number into
// 0.
void AddFusedRelu(int index, TensorId y, int64_t size_bytes, CpuProgram& program);

// The bounds of the fused ReLU's values. Without one, they are not-a-number, which bounds nothing.
struct ReluBounds {
  float least;
  float most;
};
ReluBounds FusedReluBounds(int index, const CpuProgram& program);
// The max value of a ReLU; not-a-number if it has none.
float UpperBound(const ActivationAttributes& attributes);

// Appends the gradient of a plain ReLU (IsPlainRelu), computed from its result `y`, and returns its
// tensor. All three tensors have the same layout and `size_bytes`. Zeros of padding stay zero.
TensorId AddReluBackward(const ActivationAttributes& attributes, TensorId y, TensorId dy,
                         int64_t size_bytes, CpuProgram& program);

}  // namespace shoal::cpu
