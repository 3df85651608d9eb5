#include "common/model/ops/sparsemax.h"

#include <utility>

#include "worker/compute/cuda/kernels/sparsemax.h"
#include "worker/compute/cuda/program/kernel_step.h"

namespace shoal::cuda {
namespace {

// The order of each row of x, and its threshold.
struct RowOrders {
  TensorId ranks, thresholds;
};
RowOrders AddRowOrders(const Node& node, TensorId x, const MatrixExtents& extents,
                       CudaProgramBuilder& program) {
  const int64_t rows = extents.rows;
  const auto columns = static_cast<int32_t>(extents.columns);
  const TensorId ranks = program.Scratch<int32_t>(rows * columns);
  const TensorId places = program.Scratch<int32_t>(rows * columns);
  const TensorId thresholds = program.Scratch<SparsemaxThreshold>(rows);
  TensorList of_ranks;
  const auto ranked = of_ranks.Add(x);
  const auto to_ranks = of_ranks.Add<int32_t>(ranks), to_places = of_ranks.Add<int32_t>(places);
  AddKernel(
      node, std::move(of_ranks).Take(),
      [=](const StepTensors& at) {
        return SparsemaxRanksKernel{at[ranked], rows, columns, at[to_ranks], at[to_places]};
      },
      program);
  TensorList of_thresholds;
  const auto in = of_thresholds.Add(x);
  const auto from_places = of_thresholds.Add<int32_t>(places);
  const auto to_thresholds = of_thresholds.Add<SparsemaxThreshold>(thresholds);
  AddKernel(
      node, std::move(of_thresholds).Take(),
      [=](const StepTensors& at) {
        return SparsemaxThresholdsKernel{at[in], at[from_places], rows, columns, at[to_thresholds]};
      },
      program);
  return {.ranks = ranks, .thresholds = thresholds};
}

}  // namespace

absl::Status Sparsemax(const Node& node, CudaProgramBuilder& program) {
  const MatrixExtents extents(program.shape(node.outputs[0]));
  const TensorId x = program.tensor(node.inputs[0]);
  const RowOrders orders = AddRowOrders(node, x, extents, program);
  TensorList tensors;
  const auto in = tensors.Add(x);
  const auto thresholds = tensors.Add<SparsemaxThreshold>(orders.thresholds);
  const auto y = tensors.Add(program.Output(node.outputs[0]));
  AddKernel(
      node, std::move(tensors).Take(),
      [=](const StepTensors& at) {
        return SparsemaxKernel{at[in], at[thresholds], extents.rows,
                               static_cast<int32_t>(extents.columns), at[y]};
      },
      program);
  return absl::OkStatus();
}

absl::Status SparsemaxBackward(const Node& node, CudaProgramBuilder& program) {
  const MatrixExtents extents(program.shape(node.outputs[0]));
  const TensorId x = program.tensor(node.inputs[0]);
  const RowOrders orders = AddRowOrders(node, x, extents, program);
  TensorList tensors;
  const auto in = tensors.Add(x), dy = tensors.Add(program.tensor(node.inputs[1]));
  const auto ranks = tensors.Add<int32_t>(orders.ranks);
  const auto thresholds = tensors.Add<SparsemaxThreshold>(orders.thresholds);
  const auto dx = tensors.Add(program.Output(node.outputs[0]));
  AddKernel(
      node, std::move(tensors).Take(),
      [=](const StepTensors& at) {
        return SparsemaxBackwardKernel{at[in],       at[dy],
                                       at[ranks],    at[thresholds],
                                       extents.rows, static_cast<int32_t>(extents.columns),
                                       at[dx]};
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cuda
