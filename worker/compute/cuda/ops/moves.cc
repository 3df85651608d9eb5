// Ops that only move elements or rename them in place.

#include "worker/compute/cuda/ops/moves.h"

#include "common/base/status_macros.h"
#include "common/model/ops/concatenate.h"
#include "common/model/ops/pad.h"
#include "worker/compute/cuda/kernel_step.h"
#include "worker/compute/cuda/kernels/activation.h"
#include "worker/compute/cuda/kernels/add_part.h"
#include "worker/compute/cuda/kernels/strided.h"

namespace shoal::cuda {
namespace {

template <typename Make>
std::unique_ptr<Kernel> StepOfNoOp(const char* what, const Stream* stream, Make make) {
  return std::make_unique<KernelStep<Make>>(NodeName{.op = what}, stream, std::move(make));
}

// Sizes are multiples of floats, as everywhere in a program.
class CudaMoves : public DeviceMoveKernels {
 public:
  explicit CudaMoves(const Stream* stream) : stream_(stream) {}

  std::unique_ptr<Kernel> Copy(int64_t size_bytes) const override {
    StridedAxes axes;
    const int64_t count = size_bytes / static_cast<int64_t>(sizeof(float));
    axes.AddOuter(count, 1);
    std::unique_ptr<Kernel> step;
    WithWidth<float>(count, [&]<int width>(std::integral_constant<int, width>) {
      step = StepOfNoOp(
          "Copy", stream_, [packed = PackedAxes<width>(axes), count](const StepTensors& at) {
            return StridedCopyKernel<float, width>{at[0], packed, at[1], packed, count};
          });
    });
    return step;
  }
  std::unique_ptr<Kernel> Zero(int64_t size_bytes) const override {
    const int64_t count = size_bytes / static_cast<int64_t>(sizeof(float));
    std::unique_ptr<Kernel> step;
    WithWidth<float>(count, [&]<int width>(std::integral_constant<int, width>) {
      step = StepOfNoOp("Zero", stream_, [=](const StepTensors& at) {
        return FillKernel<float, width>{0, at[0], count};
      });
    });
    return step;
  }
  std::unique_ptr<Kernel> AddPart(int64_t size_bytes) const override {
    const int64_t count = size_bytes / static_cast<int64_t>(sizeof(float));
    std::unique_ptr<Kernel> step;
    WithWidth<float>(count, [&]<int width>(std::integral_constant<int, width>) {
      step = StepOfNoOp("AddPart", stream_, [=](const StepTensors& at) {
        return AddPartKernel<width>{at.context(), at[0], count, at[1]};
      });
    });
    return step;
  }
  std::unique_ptr<Kernel> FloatsOfBytes(int64_t count) const override {
    std::unique_ptr<Kernel> step;
    WithWidth<float>(count, [&]<int width>(std::integral_constant<int, width>) {
      step = StepOfNoOp("FloatsOfBytes", stream_, [=](const StepTensors& at) {
        return FloatsOfBytesKernel<width>{at.At<uint8_t>(0), at[1], count};
      });
    });
    return step;
  }

 private:
  const Stream* const stream_;
};

// Copies the elements that `from_axes` visits, from index `from_first` on, to the places that
// `to_axes` visits. Both tensors have one type.
struct Move {
  ComputeDtype type;
  TensorId from, to;
  int64_t from_first = 0, to_first = 0;
  StridedAxes from_axes, to_axes;
  int64_t count = 0;
};
void AddMove(int index, const Move& move, CudaProgram& program) {
  const auto fits = [&](int width) {
    return move.from_axes.HasPacks(width) && move.to_axes.HasPacks(width) &&
           move.from_first % width == 0 && move.to_first % width == 0;
  };
  const auto add = [&]<typename Element, int width>(Element, std::integral_constant<int, width>) {
    AddKernel(
        index, {move.from, move.to},
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
// A move from a node's first input to its output.
Move MoveOf(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  const ComputeDtype kept = program.stored_dtype(index);
  return {.type = kept,
          .from = program.tensor(node.inputs[0], kept),
          .to = program.Output(node.outputs[0], kept)};
}

// The index of the first element of a box with distance `margins` from the sides of `shape`.
int64_t FirstOf(const Margins& margins, const Shape& shape) {
  const std::vector<int64_t> strides = StridesOf(shape);
  int64_t first = 0;
  for (size_t axis = 1; axis < shape.size(); ++axis)
    first += margins.before[axis - 1] * strides[axis];
  return first;
}

}  // namespace

std::unique_ptr<DeviceMoveKernels> CreateMoves(const Stream* stream) {
  return std::make_unique<CudaMoves>(stream);
}

absl::Status Pad(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  SHOAL_ASSIGN_OR_RETURN(const PaddedAxes axes,
                         PaddedAxesOf(program.shape(node.inputs[0]),
                                      static_cast<const PadOp&>(*node.op).margins.before,
                                      program.shape(node.outputs[0])));
  const ComputeDtype kept = program.stored_dtype(index);
  const std::vector<TensorId> tensors = {program.tensor(node.inputs[0], kept),
                                         program.Output(node.outputs[0], kept)};
  const auto add = [&]<typename Element, int width>(Element, std::integral_constant<int, width>) {
    AddKernel(
        index, tensors,
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

absl::Status Crop(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  const Shape shape = program.shape(node.inputs[0]), box = program.shape(node.outputs[0]);
  Move move = MoveOf(index, program);
  move.from_first = FirstOf(static_cast<const CropOp&>(*node.op).margins, shape);
  move.count = ElementCount(box);
  SHOAL_ASSIGN_OR_RETURN(move.from_axes, BoxAxes(box, shape));
  SHOAL_ASSIGN_OR_RETURN(move.to_axes, BoxAxes(box, box));
  AddMove(index, move, program);
  return absl::OkStatus();
}

absl::Status Concatenate(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  const int axis = static_cast<const ConcatenateOp&>(*node.op).axis;
  const Shape shape = program.shape(node.outputs[0]);
  const ComputeDtype kept = program.stored_dtype(index);
  const TensorId to = program.Output(node.outputs[0], kept);
  int64_t first = 0;
  for (const ValueId input : node.inputs) {
    const Shape box = program.shape(input);
    Move move = {.type = kept, .from = program.tensor(input, kept), .to = to, .to_first = first};
    move.count = ElementCount(box);
    SHOAL_ASSIGN_OR_RETURN(move.from_axes, BoxAxes(box, box));
    SHOAL_ASSIGN_OR_RETURN(move.to_axes, BoxAxes(box, shape));
    AddMove(index, move, program);
    first += box[axis] * StridesOf(shape)[axis];
  }
  return absl::OkStatus();
}

absl::Status BroadcastLike(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  const Shape shape = program.shape(node.outputs[0]);
  Move move = MoveOf(index, program);
  move.count = ElementCount(shape);
  SHOAL_ASSIGN_OR_RETURN(move.from_axes, RepeatedAxes(program.shape(node.inputs[0]), shape));
  SHOAL_ASSIGN_OR_RETURN(move.to_axes, BoxAxes(shape, shape));
  AddMove(index, move, program);
  return absl::OkStatus();
}

absl::Status Reshape(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  program.Bind(node.outputs[0], node.inputs[0]);
  return absl::OkStatus();
}

absl::Status ModeSwitch(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  const ValueId input = node.inputs[program.builder().training() ? 0 : 1];
  program.Bind(node.outputs[0], input);
  return absl::OkStatus();
}

}  // namespace shoal::cuda
