#include "common/model/ops/random_uniform.h"

#include "worker/compute/cuda/kernels/random_uniform.h"
#include "worker/compute/cuda/program/kernel_step.h"

namespace shoal::cuda {

absl::Status RandomUniform(const Node& node, CudaProgramBuilder& program) {
  const auto& op = static_cast<const RandomUniformOp&>(*node.op);
  const int64_t numbers = static_cast<int64_t>(op.ranges.size());
  const int64_t examples = program.count(node.outputs[0]) / numbers;
  const TensorId y = program.Output(node.outputs[0]);
  for (int64_t number = 0; number < numbers; ++number) {
    AddKernel(
        node, {y},
        [=, layer_seed = op.layer_seed, range = op.ranges[number], whole = op.whole,
         one_of_batch = op.one_of_batch](const StepTensors& at) {
          return RandomUniformKernel{at.context(), layer_seed, range, whole,   one_of_batch,
                                     number,       numbers,    at[0], examples};
        },
        program);
  }
  return absl::OkStatus();
}

}  // namespace shoal::cuda
