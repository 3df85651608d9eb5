#include "common/model/ops/sparsemax.h"

#include "worker/compute/cuda/kernel_step.h"
#include "worker/compute/cuda/kernels/sparsemax.h"

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
  AddKernel(
      node, {x, ranks, places},
      [=](const StepTensors& at) {
        return SparsemaxRanksKernel{at[0], rows, columns, at.At<int32_t>(1), at.At<int32_t>(2)};
      },
      program);
  AddKernel(
      node, {x, places, thresholds},
      [=](const StepTensors& at) {
        return SparsemaxThresholdsKernel{at[0], at.At<int32_t>(1), rows, columns,
                                         at.At<SparsemaxThreshold>(2)};
      },
      program);
  return {.ranks = ranks, .thresholds = thresholds};
}

}  // namespace

absl::Status Sparsemax(const Node& node, CudaProgramBuilder& program) {
  const MatrixExtents extents(program.shape(node.outputs[0]));
  const TensorId x = program.tensor(node.inputs[0]);
  const RowOrders orders = AddRowOrders(node, x, extents, program);
  AddKernel(
      node, {x, orders.thresholds, program.Output(node.outputs[0])},
      [=](const StepTensors& at) {
        return SparsemaxKernel{at[0], at.At<SparsemaxThreshold>(1), extents.rows,
                               static_cast<int32_t>(extents.columns), at[2]};
      },
      program);
  return absl::OkStatus();
}

absl::Status SparsemaxBackward(const Node& node, CudaProgramBuilder& program) {
  const MatrixExtents extents(program.shape(node.outputs[0]));
  const TensorId x = program.tensor(node.inputs[0]);
  const RowOrders orders = AddRowOrders(node, x, extents, program);
  AddKernel(
      node,
      {x, program.tensor(node.inputs[1]), orders.ranks, orders.thresholds,
       program.Output(node.outputs[0])},
      [=](const StepTensors& at) {
        return SparsemaxBackwardKernel{at[0],
                                       at[1],
                                       at.At<int32_t>(2),
                                       at.At<SparsemaxThreshold>(3),
                                       extents.rows,
                                       static_cast<int32_t>(extents.columns),
                                       at[4]};
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cuda
