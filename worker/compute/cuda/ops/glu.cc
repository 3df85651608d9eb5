#include "common/model/ops/glu.h"

#include "worker/compute/cuda/kernel_step.h"
#include "worker/compute/cuda/kernels/glu.h"

namespace shoal::cuda {

absl::Status Glu(const Node& node, CudaProgramBuilder& program) {
  const int64_t half = program.shape(node.outputs[0]).back();
  const int64_t count = program.count(node.outputs[0]);
  AddKernel(
      node, {program.tensor(node.inputs[0]), program.Output(node.outputs[0])},
      [=](const StepTensors& at) {
        return GluKernel{at[0], at[1], half, count};
      },
      program);
  return absl::OkStatus();
}

absl::Status GluBackward(const Node& node, CudaProgramBuilder& program) {
  const int64_t half = program.shape(node.inputs[1]).back();
  const int64_t count = program.count(node.inputs[1]);
  AddKernel(
      node,
      {program.tensor(node.inputs[0]), program.tensor(node.inputs[1]),
       program.Output(node.outputs[0])},
      [=](const StepTensors& at) {
        return GluBackwardKernel{at[0], at[1], at[2], half, count};
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cuda
