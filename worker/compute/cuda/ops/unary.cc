#include "common/model/ops/unary.h"

#include "worker/compute/cuda/kernels/unary.h"
#include "worker/compute/cuda/program/kernel_step.h"

namespace shoal::cuda {

absl::Status Unary(const Node& node, CudaProgramBuilder& program) {
  const auto& op = static_cast<const UnaryOp&>(*node.op);
  const UnaryAttributes attributes = {op.kind, op.exponent, op.low, op.high};
  const int64_t count = program.count(node.outputs[0]);
  AddKernel(
      node, {program.tensor(node.inputs[0]), program.Output(node.outputs[0])},
      [=](const StepTensors& at) {
        return UnaryKernel{attributes, at[0], at[1], count};
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cuda
