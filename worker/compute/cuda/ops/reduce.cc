#include "common/model/ops/reduce.h"

#include "common/base/status_macros.h"
#include "worker/compute/cuda/kernels/reduce.h"
#include "worker/compute/cuda/kernels/strided.h"
#include "worker/compute/cuda/ops/strided_move.h"
#include "worker/compute/cuda/program/kernel_step.h"

namespace shoal::cuda {
namespace {

// The elements of a tensor of shape `x` that are reduced to one result of shape `y`, and their
// strides.
struct ReducedAxes {
  StridedAxes kept, reduced;
  int64_t count = 1;  // elements per result
};
absl::StatusOr<ReducedAxes> ReducedAxesOf(const Shape& x, const Shape& y) {
  const std::vector<int64_t> strides = StridesOf(x);
  ReducedAxes axes;
  bool fit = true;
  for (size_t axis = x.size(); axis-- > 0;) {
    const size_t from_last = x.size() - axis;
    const bool kept = from_last <= y.size() && y[y.size() - from_last] != 1;
    fit = fit && (kept ? axes.kept : axes.reduced).AddOuter(x[axis], strides[axis]);
    if (!kept) axes.count *= x[axis];
  }
  SHOAL_RETURN_IF_ERROR(AxesIf(fit, {}, x).status());
  return axes;
}

template <typename Reduction, int group>
void AddReduction(const Node& node, const ReducedAxes& axes, int64_t results,
                  CudaProgramBuilder& program) {
  using Reduce = ReduceKernel<Reduction, group>;
  // Enough blocks for the device, with a few dozen numbers per thread.
  const int64_t wanted = program.target().blocks * Reduce::kSlices / std::max<int64_t>(1, results);
  const int64_t slices = std::clamp<int64_t>(wanted, 1, axes.count / (32 * group) + 1);
  const TensorId partial = program.Scratch<double>(slices * results);
  AddKernel(
      node, {program.tensor(node.inputs[0]), partial},
      [=](const StepTensors& at) {
        return Reduce{at[0],      axes.kept, axes.reduced,    results,
                      axes.count, slices,    at.At<double>(1)};
      },
      program);
  AddKernel(
      node, {partial, program.Output(node.outputs[0])},
      [=](const StepTensors& at) {
        return ReduceSlicesKernel<Reduction>{at.At<double>(0), results, slices, at[1]};
      },
      program);
}

template <typename Reduction>
absl::Status Reduce(const Node& node, CudaProgramBuilder& program) {
  const Shape x = program.shape(node.inputs[0]), y = program.shape(node.outputs[0]);
  SHOAL_ASSIGN_OR_RETURN(const ReducedAxes axes, ReducedAxesOf(x, y));
  const int64_t results = ElementCount(y);
  if (axes.count <= 64) {
    AddReduction<Reduction, 1>(node, axes, results, program);
  } else {
    AddReduction<Reduction, 256>(node, axes, results, program);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SumTo(const Node& node, CudaProgramBuilder& program) {
  return Reduce<SumReduction>(node, program);
}

absl::Status MaxTo(const Node& node, CudaProgramBuilder& program) {
  return Reduce<MaxReduction>(node, program);
}

absl::Status BroadcastLike(const Node& node, CudaProgramBuilder& program) {
  const Shape shape = program.shape(node.outputs[0]);
  Move move = MoveOf(node, program);
  move.count = ElementCount(shape);
  SHOAL_ASSIGN_OR_RETURN(move.from_axes, RepeatedAxes(program.shape(node.inputs[0]), shape));
  SHOAL_ASSIGN_OR_RETURN(move.to_axes, BoxAxes(shape, shape));
  AddMove(node, move, program);
  return absl::OkStatus();
}

absl::Status MeanGradient(const Node& node, CudaProgramBuilder& program) {
  const ValueId output = node.outputs[0];
  const float share = 1.0f / static_cast<float>(program.shape(output)[0]);
  const int64_t count = program.count(output);
  AddKernel(
      node, {program.Output(output)},
      [=](const StepTensors& at) {
        return FillKernel<float, 1>{share, at[0], count};
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cuda
