#include "common/model/ops/pad.h"

#include <vector>

#include "common/base/status_macros.h"
#include "worker/compute/cuda/kernels/pad.h"
#include "worker/compute/cuda/kernels/strided.h"
#include "worker/compute/cuda/ops/strided_move.h"
#include "worker/compute/cuda/program/kernel_step.h"

namespace shoal::cuda {
namespace {

// The index of the first element of a box with distance `margins` from the sides of `shape`.
int64_t FirstOf(const Margins& margins, const Shape& shape) {
  const std::vector<int64_t> strides = StridesOf(shape);
  int64_t first = 0;
  for (size_t axis = 1; axis < shape.size(); ++axis)
    first += margins.before[axis - 1] * strides[axis];
  return first;
}

}  // namespace

absl::Status Pad(const Node& node, CudaProgramBuilder& program) {
  SHOAL_ASSIGN_OR_RETURN(const PaddedAxes axes,
                         PaddedAxesOf(program.shape(node.inputs[0]),
                                      static_cast<const PadOp&>(*node.op).margins.before,
                                      program.shape(node.outputs[0])));
  const ComputeDtype kept = program.stored_dtype(node);
  const std::vector<TensorId> tensors = {program.tensor(node.inputs[0], kept),
                                         program.Output(node.outputs[0], kept)};
  const auto add = [&]<typename Element, int width>(Element, std::integral_constant<int, width>) {
    AddKernel(
        node, tensors,
        [=](const StepTensors& at) {
          return PadKernel<Element, width>(axes, at.At<Element>(0), at.At<Element>(1));
        },
        program);
  };
  WithElement(kept, [&]<typename Element>(Element element) {
    WithFittingWidth<Element>([&](int width) { return axes.HasPacks(width); },
                              [&](auto width) { add(element, width); });
  });
  return absl::OkStatus();
}

absl::Status Crop(const Node& node, CudaProgramBuilder& program) {
  const Shape shape = program.shape(node.inputs[0]), box = program.shape(node.outputs[0]);
  Move move = MoveOf(node, program);
  move.from_first = FirstOf(static_cast<const CropOp&>(*node.op).margins, shape);
  move.count = ElementCount(box);
  SHOAL_ASSIGN_OR_RETURN(move.from_axes, BoxAxes(box, shape));
  SHOAL_ASSIGN_OR_RETURN(move.to_axes, BoxAxes(box, box));
  AddMove(node, move, program);
  return absl::OkStatus();
}

}  // namespace shoal::cuda
