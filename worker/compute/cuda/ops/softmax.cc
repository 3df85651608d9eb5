#include "common/model/ops/softmax.h"

#include <utility>

#include "worker/compute/cuda/kernels/softmax.h"
#include "worker/compute/cuda/program/kernel_step.h"

namespace shoal::cuda {

absl::Status Softmax(const Node& node, CudaProgramBuilder& program) {
  const MatrixExtents extents(program.shape(node.inputs[0]));
  const ComputeDtype kept = program.stored_dtype(node);
  WithElement(kept, [&]<typename Element>(Element) {
    WithGroup(extents.columns, [&]<int group>(std::integral_constant<int, group>) {
      TensorList tensors;
      const auto x = tensors.Add<Element>(program.tensor(node.inputs[0], kept));
      const auto y = tensors.Add<Element>(program.Output(node.outputs[0], kept));
      AddKernel(
          node, std::move(tensors).Take(),
          [=, kind = static_cast<const SoftmaxOp&>(*node.op).kind](const StepTensors& at) {
            return SoftmaxKernel<Element, group>{kind, at[x], at[y], extents.rows, extents.columns};
          },
          program);
    });
  });
  return absl::OkStatus();
}

absl::Status SoftmaxBackward(const Node& node, CudaProgramBuilder& program) {
  const MatrixExtents extents(program.shape(node.inputs[0]));
  const ComputeDtype kept = program.stored_dtype(node);
  WithElement(kept, [&]<typename Element>(Element) {
    WithGroup(extents.columns, [&]<int group>(std::integral_constant<int, group>) {
      TensorList tensors;
      const auto y = tensors.Add<Element>(program.tensor(node.inputs[0], kept));
      const auto dy = tensors.Add<Element>(program.tensor(node.inputs[1], kept));
      const auto dx = tensors.Add<Element>(program.Output(node.outputs[0], kept));
      AddKernel(
          node, std::move(tensors).Take(),
          [=, kind = static_cast<const SoftmaxBackwardOp&>(*node.op).kind](const StepTensors& at) {
            return SoftmaxBackwardKernel<Element, group>{kind,   at[y],        at[dy],
                                                         at[dx], extents.rows, extents.columns};
          },
          program);
    });
  });
  return absl::OkStatus();
}

}  // namespace shoal::cuda
