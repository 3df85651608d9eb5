#include "worker/compute/cuda/ops/strided_move.h"

#include "worker/compute/cuda/program/kernel_step.h"

namespace shoal::cuda {

void AddMove(const Node& node, const Move& move, CudaProgramBuilder& program) {
  const auto fits = [&](int width) {
    return move.from_axes.HasPacks(width) && move.to_axes.HasPacks(width) &&
           move.from_first % width == 0 && move.to_first % width == 0;
  };
  const auto add = [&]<typename Element, int width>(Element, std::integral_constant<int, width>) {
    AddKernel(
        node, {move.from, move.to},
        [=, from_axes = PackedAxes<width>(move.from_axes),
         to_axes = PackedAxes<width>(move.to_axes)](const StepTensors& at) {
          return StridedCopyKernel<Element, width>{at.At<Element>(0) + move.from_first, from_axes,
                                                   at.At<Element>(1) + move.to_first, to_axes,
                                                   move.count};
        },
        program);
  };
  WithElement(move.type, [&]<typename Element>(Element element) {
    WithFittingWidth<Element>(fits, [&](auto width) { add(element, width); });
  });
}

Move MoveOf(const Node& node, CudaProgramBuilder& program) {
  const ComputeDtype kept = program.stored_dtype(node);
  return {.type = kept,
          .from = program.tensor(node.inputs[0], kept),
          .to = program.Output(node.outputs[0], kept)};
}

}  // namespace shoal::cuda
