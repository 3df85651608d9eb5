#include "common/model/ops/softmax.h"

#include "worker/compute/cuda/kernel_step.h"
#include "worker/compute/cuda/kernels/softmax.h"

namespace shoal::cuda {

absl::Status Softmax(const Node& node, CudaProgramBuilder& program) {
  const MatrixExtents extents(program.shape(node.inputs[0]));
  const ComputeDtype kept = program.stored_dtype(node);
  WithElement(kept, [&]<typename Element>(Element) {
    WithGroup(extents.columns, [&]<int group>(std::integral_constant<int, group>) {
      AddKernel(
          node, {program.tensor(node.inputs[0], kept), program.Output(node.outputs[0], kept)},
          [=, kind = static_cast<const SoftmaxOp&>(*node.op).kind](const StepTensors& at) {
            return SoftmaxKernel<Element, group>{kind, at.At<Element>(0), at.At<Element>(1),
                                                 extents.rows, extents.columns};
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
      AddKernel(
          node,
          {program.tensor(node.inputs[0], kept), program.tensor(node.inputs[1], kept),
           program.Output(node.outputs[0], kept)},
          [=, kind = static_cast<const SoftmaxBackwardOp&>(*node.op).kind](const StepTensors& at) {
            return SoftmaxBackwardKernel<Element, group>{
                kind,         at.At<Element>(0), at.At<Element>(1), at.At<Element>(2),
                extents.rows, extents.columns};
          },
          program);
    });
  });
  return absl::OkStatus();
}

}  // namespace shoal::cuda
