#include "common/model/ops/depthwise_conv2d.h"

#include "worker/compute/cpu/conv2d.h"

namespace shoal::cpu {
namespace {

// One group for each channel. The kernel's values have the same order in memory.
Convolution AsGroups(const Window& window, const Shape& kernel) {
  return {.window = window,
          .groups = kernel[2],
          .kernel = {kernel[0], kernel[1], 1, kernel[2] * kernel[3]}};
}

}  // namespace

absl::Status DepthwiseConv2D(const Node& node, CpuProgramBuilder& program) {
  const auto& op = static_cast<const DepthwiseConv2DOp&>(*node.op);
  return AddConvolution(node, AsGroups(op.window, program.builder().shape(node.inputs[1])),
                        program);
}

absl::Status DepthwiseConv2DBackwardData(const Node& node, CpuProgramBuilder& program) {
  const auto& op = static_cast<const DepthwiseConv2DBackwardDataOp&>(*node.op);
  return AddConvolutionBackwardData(
      node, AsGroups(op.window, program.builder().shape(node.inputs[1])), program);
}

absl::Status DepthwiseConv2DBackwardWeights(const Node& node, CpuProgramBuilder& program) {
  const auto& op = static_cast<const DepthwiseConv2DBackwardWeightsOp&>(*node.op);
  return AddConvolutionBackwardWeights(node, AsGroups(op.window, op.kernel_shape), program);
}

}  // namespace shoal::cpu
