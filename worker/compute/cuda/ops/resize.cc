#include "common/model/ops/resize.h"

#include "worker/compute/cuda/kernels/resize.h"
#include "worker/compute/cuda/program/kernel_step.h"

namespace shoal::cuda {
namespace {

ResizeExtents ExtentsOf(ResizeOp::Interpolation interpolation, const Shape& x, const Shape& y) {
  return {.interpolation = interpolation,
          .batch = x[0],
          .height = static_cast<int32_t>(x[1]),
          .width = static_cast<int32_t>(x[2]),
          .out_height = static_cast<int32_t>(y[1]),
          .out_width = static_cast<int32_t>(y[2]),
          .channels = static_cast<int32_t>(x[3])};
}

}  // namespace

absl::Status Resize(const Node& node, CudaProgramBuilder& program) {
  const ResizeExtents extents =
      ExtentsOf(static_cast<const ResizeOp&>(*node.op).interpolation, program.shape(node.inputs[0]),
                program.shape(node.outputs[0]));
  AddKernel(
      node, {program.tensor(node.inputs[0]), program.Output(node.outputs[0])},
      [=](const StepTensors& at) {
        return ResizeKernel{extents, at[0], at[1]};
      },
      program);
  return absl::OkStatus();
}

absl::Status ResizeBackward(const Node& node, CudaProgramBuilder& program) {
  const ResizeExtents extents =
      ExtentsOf(static_cast<const ResizeBackwardOp&>(*node.op).interpolation,
                program.shape(node.outputs[0]), program.shape(node.inputs[0]));
  AddKernel(
      node, {program.tensor(node.inputs[0]), program.Output(node.outputs[0])},
      [=](const StepTensors& at) {
        return ResizeBackwardKernel{extents, at[0], at[1]};
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cuda
