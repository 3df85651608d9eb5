#include "common/model/ops/activation.h"

#include <utility>

#include "worker/compute/cuda/kernels/activation.h"
#include "worker/compute/cuda/program/kernel_step.h"

namespace shoal::cuda {

absl::Status Activation(const Node& node, CudaProgramBuilder& program) {
  const int64_t count = program.count(node.outputs[0]);
  const ActivationAttributes attributes = static_cast<const ActivationOp&>(*node.op).attributes;
  const ComputeDtype kept = program.stored_dtype(node);
  const auto add = [&]<typename Element, int width>(Element, std::integral_constant<int, width>) {
    TensorList tensors;
    const auto x = tensors.Add<Element>(program.tensor(node.inputs[0], kept));
    const auto y = tensors.Add<Element>(program.Output(node.outputs[0], kept));
    AddKernel(
        node, std::move(tensors).Take(),
        [=](const StepTensors& at) {
          return ActivationKernel<Element, width>{at[x], at[y], count, attributes};
        },
        program);
  };
  WithPacks(kept, count, add);
  return absl::OkStatus();
}

absl::Status ActivationBackward(const Node& node, CudaProgramBuilder& program) {
  const int64_t count = program.count(node.outputs[0]);
  const auto attributes = static_cast<const ActivationBackwardOp&>(*node.op).attributes;
  const ComputeDtype kept = program.stored_dtype(node);
  const auto add = [&]<typename Element, int width>(Element, std::integral_constant<int, width>) {
    TensorList tensors;
    const auto x = tensors.Add<Element>(program.tensor(node.inputs[0], kept));
    const auto y = tensors.Add<Element>(program.tensor(node.inputs[1], kept));
    const auto dy = tensors.Add<Element>(program.tensor(node.inputs[2], kept));
    const auto dx = tensors.Add<Element>(program.Output(node.outputs[0], kept));
    AddKernel(
        node, std::move(tensors).Take(),
        [=](const StepTensors& at) {
          return ActivationBackwardKernel<Element, width>{at[x],  at[y], at[dy],
                                                          at[dx], count, attributes};
        },
        program);
  };
  WithPacks(kept, count, add);
  return absl::OkStatus();
}

}  // namespace shoal::cuda
