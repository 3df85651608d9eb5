#include "common/model/ops/activation.h"

#include "worker/compute/cuda/kernel_step.h"
#include "worker/compute/cuda/kernels/activation.h"

namespace shoal::cuda {

absl::Status Activation(const Node& node, CudaProgramBuilder& program) {
  const int64_t count = program.count(node.outputs[0]);
  const ActivationAttributes attributes = static_cast<const ActivationOp&>(*node.op).attributes;
  const ComputeDtype kept = program.stored_dtype(node);
  const auto add = [&]<typename Element, int width>(Element, std::integral_constant<int, width>) {
    AddKernel(
        node, {program.tensor(node.inputs[0], kept), program.Output(node.outputs[0], kept)},
        [=](const StepTensors& at) {
          return ActivationKernel<Element, width>{at.At<Element>(0), at.At<Element>(1), count,
                                                  attributes};
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
    AddKernel(
        node,
        {program.tensor(node.inputs[0], kept), program.tensor(node.inputs[1], kept),
         program.tensor(node.inputs[2], kept), program.Output(node.outputs[0], kept)},
        [=](const StepTensors& at) {
          return ActivationBackwardKernel<Element, width>{
              at.At<Element>(0), at.At<Element>(1), at.At<Element>(2), at.At<Element>(3), count,
              attributes};
        },
        program);
  };
  WithPacks(kept, count, add);
  return absl::OkStatus();
}

}  // namespace shoal::cuda
