#include "common/model/ops/warp.h"

#include <utility>

#include "worker/compute/cuda/kernels/warp.h"
#include "worker/compute/cuda/program/kernel_step.h"

namespace shoal::cuda {
namespace {

// Warps images of shape `x` to shape `y`, by `numbers` for each image.
WarpExtents ExtentsOf(const WarpAttributes& attributes, const Shape& x, const Shape& y,
                      const Shape& numbers) {
  return {.attributes = attributes,
          .batch = x[0],
          .height = static_cast<int32_t>(x[1]),
          .width = static_cast<int32_t>(x[2]),
          .out_height = static_cast<int32_t>(y[1]),
          .out_width = static_cast<int32_t>(y[2]),
          .channels = static_cast<int32_t>(x[3]),
          .numbers = static_cast<int32_t>(numbers[1])};
}

}  // namespace

absl::Status Warp(const Node& node, CudaProgramBuilder& program) {
  const WarpExtents extents =
      ExtentsOf(static_cast<const WarpOp&>(*node.op).attributes, program.shape(node.inputs[0]),
                program.shape(node.outputs[0]), program.shape(node.inputs[1]));
  TensorList tensors;
  const auto x = tensors.Add(program.tensor(node.inputs[0]));
  const auto numbers = tensors.Add(program.tensor(node.inputs[1]));
  const auto y = tensors.Add(program.Output(node.outputs[0]));
  AddKernel(
      node, std::move(tensors).Take(),
      [=](const StepTensors& at) {
        return WarpKernel{extents, at[x], at[numbers], at[y]};
      },
      program);
  return absl::OkStatus();
}

absl::Status WarpBackward(const Node& node, CudaProgramBuilder& program) {
  const WarpExtents extents = ExtentsOf(
      static_cast<const WarpBackwardOp&>(*node.op).attributes, program.shape(node.outputs[0]),
      program.shape(node.inputs[0]), program.shape(node.inputs[1]));
  TensorList tensors;
  const auto dy = tensors.Add(program.tensor(node.inputs[0]));
  const auto numbers = tensors.Add(program.tensor(node.inputs[1]));
  const auto dx = tensors.Add(program.Output(node.outputs[0]));
  AddKernel(
      node, std::move(tensors).Take(),
      [=](const StepTensors& at) {
        return WarpBackwardKernel{extents, at[dy], at[numbers], at[dx]};
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cuda
