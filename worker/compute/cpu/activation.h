#pragma once

#include <cstdint>

#include "common/model/ops/activation.h"
#include "worker/compute/cpu/cpu_program_builder.h"
#include "worker/compute/plan/fused_ops.h"

namespace shoal::cpu {

// Appends the fused ReLU of a node, if any, on the node's result `y` of any layout.
// Zeros of padding stay zero. oneDNN could apply it in registers, but would turn not-a-number into
// 0.
void AddFusedRelu(const Node& node, TensorId y, int64_t size_bytes, CpuProgramBuilder& program);

// The bounds of the fused ReLU's values. Without one, they are not-a-number, which bounds nothing.
struct ReluBounds {
  float least;
  float most;
};
ReluBounds FusedReluBounds(const Node& node);
// The max value of a ReLU; not-a-number if it has none: `max_value` < 0.
float UpperBound(double max_value);

// Appends the gradient of a plain ReLU (IsPlainRelu), computed from its result `y`, and returns its
// tensor. All three tensors have the same layout, type and `size_bytes`. Zeros of padding stay
// zero.
TensorId AddReluBackward(const FusedRelu& relu, TensorId y, TensorId dy, int64_t size_bytes,
                         CpuProgramBuilder& program);

}  // namespace shoal::cpu
