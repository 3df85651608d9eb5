#include "common/model/ops/rescale.h"

#include <algorithm>
#include <utility>

#include "worker/compute/cuda/kernels/rescale.h"
#include "worker/compute/cuda/program/kernel_step.h"

namespace shoal::cuda {

absl::Status Rescale(const Node& node, CudaProgramBuilder& program) {
  const auto& op = static_cast<const RescaleOp&>(*node.op);
  const ComputeDtype kept = program.stored_dtype(node);
  const TensorId x = program.tensor(node.inputs[0]), y = program.Output(node.outputs[0], kept);
  MatrixExtents extents(program.shape(node.outputs[0]));
  if (op.scale.size() == 1 && op.offset.size() == 1) {
    extents.columns *= std::exchange(extents.rows, 1);
    std::swap(extents.rows, extents.columns);
  }
  const auto add = [&]<typename Element, int width>(Element, std::integral_constant<int, width>) {
    using Kernel = RescaleKernel<Element, width>;
    for (int64_t first = 0; first < extents.columns; first += Kernel::kMaxChannels) {
      const auto channels =
          static_cast<int32_t>(std::min<int64_t>(extents.columns - first, Kernel::kMaxChannels));
      Kernel kernel = {.rows = extents.rows,
                       .columns = extents.columns,
                       .first = first,
                       .channels = channels,
                       .by_channels = FastDivisor(channels)};
      for (int32_t i = 0; i < channels; ++i) {
        kernel.scale[i] = static_cast<float>(op.scale[op.scale.size() == 1 ? 0 : first + i]);
        kernel.offset[i] = static_cast<float>(op.offset[op.offset.size() == 1 ? 0 : first + i]);
      }
      AddKernel(
          node, {x, y},
          [=](const StepTensors& at) {
            Kernel placed = kernel;
            placed.x = at[0];
            placed.y = at.At<Element>(1);
            return placed;
          },
          program);
    }
  };
  // Width one if the channels are split into several parts.
  const bool whole = extents.columns <= RescaleKernel<float, 1>::kMaxChannels;
  WithPacks(kept, whole ? extents.rows * extents.columns : 1, add);
  return absl::OkStatus();
}

}  // namespace shoal::cuda
