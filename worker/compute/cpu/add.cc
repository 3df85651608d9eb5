#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/cpu/operands.h"

namespace shoal::cpu {
namespace {

SHOAL_VECTORIZED void SumLoop(const float* a, const float* b, int64_t count, float* sum) {
  for (int64_t i = 0; i < count; ++i) sum[i] = a[i] + b[i];
}

}  // namespace

absl::Status Add(int index, CpuProgram& program) {
  const Node& node = program.graph().nodes()[index];
  const Operands operands = AlignOperands(node.inputs, node.outputs[0], true, program);
  AddLoopStep(
      operands.count, kElementGrain, operands.tensors,
      [inputs = node.inputs.size()](const RunContext&, float* const* data, int64_t begin,
                                    int64_t end) {
        float* sum = data[inputs] + begin;
        SumLoop(data[0] + begin, data[1] + begin, end - begin, sum);
        for (size_t i = 2; i < inputs; ++i) SumLoop(sum, data[i] + begin, end - begin, sum);
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cpu
