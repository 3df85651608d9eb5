#include "common/model/ops/glu.h"

#include <utility>

#include "worker/compute/cuda/kernels/glu.h"
#include "worker/compute/cuda/program/kernel_step.h"

namespace shoal::cuda {

absl::Status Glu(const Node& node, CudaProgramBuilder& program) {
  const int64_t half = program.shape(node.outputs[0]).back();
  const int64_t count = program.count(node.outputs[0]);
  TensorList tensors;
  const auto x = tensors.Add(program.tensor(node.inputs[0]));
  const auto y = tensors.Add(program.Output(node.outputs[0]));
  AddKernel(
      node, std::move(tensors).Take(),
      [=](const StepTensors& at) {
        return GluKernel{at[x], at[y], half, count};
      },
      program);
  return absl::OkStatus();
}

absl::Status GluBackward(const Node& node, CudaProgramBuilder& program) {
  const int64_t half = program.shape(node.inputs[1]).back();
  const int64_t count = program.count(node.inputs[1]);
  TensorList tensors;
  const auto x = tensors.Add(program.tensor(node.inputs[0]));
  const auto dy = tensors.Add(program.tensor(node.inputs[1]));
  const auto dx = tensors.Add(program.Output(node.outputs[0]));
  AddKernel(
      node, std::move(tensors).Take(),
      [=](const StepTensors& at) {
        return GluBackwardKernel{at[x], at[dy], at[dx], half, count};
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cuda
