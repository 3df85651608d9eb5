#include "common/model/ops/random_uniform.h"

#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/op_math/step_random.h"

namespace shoal::cpu {

absl::Status RandomUniform(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const Shape y = builder.shape(node.outputs[0]);
  AddLoopStep(
      ElementCount(y), kElementGrain, {builder.Output(node.outputs[0])},
      [op = static_cast<const RandomUniformOp&>(*node.op), count = y[1]](
          const RunContext& context, const LoopTensors& data, int64_t begin, int64_t end) {
        const StepRandom random(context, op.layer_seed);
        for (int64_t i = begin; i < end; ++i) {
          data[0][i] = UniformDraw(op, random, context.first_example + i / count, i % count);
        }
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cpu
