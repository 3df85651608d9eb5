#include "common/model/ops/dropout.h"

#include "worker/compute/cuda/kernels/dropout.h"
#include "worker/compute/cuda/program/kernel_step.h"

namespace shoal::cuda {
namespace {

template <typename DropoutOpType>
absl::Status ApplyDropout(const Node& node, CudaProgramBuilder& program) {
  if (!program.builder().in_training_mode()) {
    program.Bind(node.outputs[0], node.inputs[0]);
    return absl::OkStatus();
  }
  const auto& op = static_cast<const DropoutOpType&>(*node.op);
  const int64_t count = program.count(node.outputs[0]);
  const int64_t example_size = count / program.shape(node.outputs[0])[0];
  AddKernel(
      node, {program.tensor(node.inputs[0]), program.Output(node.outputs[0])},
      [=, layer_seed = op.layer_seed, rate = op.rate, groups = op.groups](const StepTensors& at) {
        return DropoutKernel{at.context(), layer_seed, rate,  groups,
                             example_size, at[0],      at[1], count};
      },
      program);
  return absl::OkStatus();
}

}  // namespace

absl::Status Dropout(const Node& node, CudaProgramBuilder& program) {
  return ApplyDropout<DropoutOp>(node, program);
}

absl::Status DropoutBackward(const Node& node, CudaProgramBuilder& program) {
  return ApplyDropout<DropoutBackwardOp>(node, program);
}

}  // namespace shoal::cuda
