#include "worker/compute/cpu/activation.h"
#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/cpu/operands.h"

namespace shoal::cpu {
namespace {

SHOAL_VECTORIZED void SumLoop(const float* a, const float* b, int64_t count, float* sum) {
  for (int64_t i = 0; i < count; ++i) sum[i] = a[i] + b[i];
}

// The sum with its fused ReLU. A bound of not-a-number bounds nothing. A value of not-a-number is
// kept.
SHOAL_VECTORIZED void BoundedSumLoop(const float* a, const float* b, ReluBounds bounds,
                                     int64_t count, float* sum) {
  for (int64_t i = 0; i < count; ++i) {
    const float raised = bounds.least > a[i] + b[i] ? bounds.least : a[i] + b[i];
    sum[i] = bounds.most < raised ? bounds.most : raised;
  }
}

}  // namespace

absl::Status Add(const Node& node, CpuProgram& program) {
  const Operands operands = AlignOperands(node.inputs, node.outputs[0], true, program);
  AddLoopStep(
      operands.count, kElementGrain, operands.tensors,
      [inputs = node.inputs.size(), bounds = FusedReluBounds(node)](
          const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
        float* sum = data[inputs] + begin;
        const float* partial = data[0] + begin;
        for (size_t i = 1; i + 1 < inputs; ++i) {
          SumLoop(partial, data[i] + begin, end - begin, sum);
          partial = sum;
        }
        BoundedSumLoop(partial, data[inputs - 1] + begin, bounds, end - begin, sum);
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cpu
