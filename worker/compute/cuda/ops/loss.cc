// Ops along rows: softmax, sparsemax, losses, embeddings.

#include "common/model/ops/gather.h"
#include "common/model/ops/loss.h"
#include "common/model/ops/softmax.h"
#include "worker/compute/cuda/kernel_step.h"
#include "worker/compute/cuda/kernels/cross_entropy.h"
#include "worker/compute/cuda/kernels/elements.h"
#include "worker/compute/cuda/kernels/gather.h"
#include "worker/compute/cuda/kernels/softmax.h"
#include "worker/compute/cuda/kernels/sparsemax.h"
#include "worker/compute/cuda/kernels/strided.h"
#include "worker/compute/op_math/loss_functions.h"

namespace shoal::cuda {
namespace {

MatrixExtents PredictionExtents(const Shape& prediction) {
  const int64_t columns = LossRowLength(prediction);
  return MatrixExtents({ElementCount(prediction) / columns, columns});
}

// The order of each row of x, and its threshold.
struct RowOrders {
  TensorId ranks, thresholds;
};
RowOrders AddRowOrders(int index, TensorId x, const MatrixExtents& extents, CudaProgram& program) {
  const int64_t rows = extents.rows;
  const auto columns = static_cast<int32_t>(extents.columns);
  const TensorId ranks = program.Scratch<int32_t>(rows * columns);
  const TensorId places = program.Scratch<int32_t>(rows * columns);
  const TensorId thresholds = program.Scratch<SparsemaxThreshold>(rows);
  AddKernel(
      index, {x, ranks, places},
      [=](const StepTensors& at) {
        return SparsemaxRanksKernel{at[0], rows, columns, at.At<int32_t>(1), at.At<int32_t>(2)};
      },
      program);
  AddKernel(
      index, {x, places, thresholds},
      [=](const StepTensors& at) {
        return SparsemaxThresholdsKernel{at[0], at.At<int32_t>(1), rows, columns,
                                         at.At<SparsemaxThreshold>(2)};
      },
      program);
  return {.ranks = ranks, .thresholds = thresholds};
}

}  // namespace

absl::Status Softmax(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  const MatrixExtents extents(program.shape(node.inputs[0]));
  const ComputeDtype kept = program.stored_dtype(index);
  WithElement(kept, [&]<typename Element>(Element) {
    WithGroup(extents.columns, [&]<int group>(std::integral_constant<int, group>) {
      AddKernel(
          index, {program.tensor(node.inputs[0], kept), program.Output(node.outputs[0], kept)},
          [=, kind = static_cast<const SoftmaxOp&>(*node.op).kind](const StepTensors& at) {
            return SoftmaxKernel<Element, group>{kind, at.At<Element>(0), at.At<Element>(1),
                                                 extents.rows, extents.columns};
          },
          program);
    });
  });
  return absl::OkStatus();
}

absl::Status SoftmaxBackward(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  const MatrixExtents extents(program.shape(node.inputs[0]));
  const ComputeDtype kept = program.stored_dtype(index);
  WithElement(kept, [&]<typename Element>(Element) {
    WithGroup(extents.columns, [&]<int group>(std::integral_constant<int, group>) {
      AddKernel(
          index,
          {program.tensor(node.inputs[0], kept), program.tensor(node.inputs[1], kept),
           program.Output(node.outputs[0], kept)},
          [=, kind = static_cast<const SoftmaxBackwardOp&>(*node.op).kind](const StepTensors& at) {
            return SoftmaxBackwardKernel<Element, group>{
                kind,         at.At<Element>(0), at.At<Element>(1), at.At<Element>(2),
                extents.rows, extents.columns};
          },
          program);
    });
  });
  return absl::OkStatus();
}

absl::Status Sparsemax(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  const MatrixExtents extents(program.shape(node.outputs[0]));
  const TensorId x = program.tensor(node.inputs[0]);
  const RowOrders orders = AddRowOrders(index, x, extents, program);
  AddKernel(
      index, {x, orders.thresholds, program.Output(node.outputs[0])},
      [=](const StepTensors& at) {
        return SparsemaxKernel{at[0], at.At<SparsemaxThreshold>(1), extents.rows,
                               static_cast<int32_t>(extents.columns), at[2]};
      },
      program);
  return absl::OkStatus();
}

absl::Status SparsemaxBackward(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  const MatrixExtents extents(program.shape(node.outputs[0]));
  const TensorId x = program.tensor(node.inputs[0]);
  const RowOrders orders = AddRowOrders(index, x, extents, program);
  AddKernel(
      index,
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

absl::Status Loss(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  const LossAttributes attributes = static_cast<const LossOp&>(*node.op).attributes;
  const MatrixExtents extents = PredictionExtents(program.shape(node.inputs[0]));
  const int64_t examples = program.count(node.outputs[0]), inner = extents.rows / examples;
  const TensorId loss = program.Output(node.outputs[0]);
  const TensorId of_rows = inner == 1 ? loss : program.Scratch(extents.rows);
  const std::vector<TensorId> tensors = {program.tensor(node.inputs[0]),
                                         program.tensor(node.inputs[1]), of_rows};
  if (attributes.kind == LossAttributes::Kind::kMeanSquaredError) {
    AddKernel(
        index, tensors,
        [=](const StepTensors& at) {
          return SquaredErrorKernel{at[0], at[1], at[2], extents.rows, extents.columns};
        },
        program);
  } else {
    WithGroup(extents.columns, [&]<int group>(std::integral_constant<int, group>) {
      AddKernel(
          index, tensors,
          [=](const StepTensors& at) {
            return CrossEntropyKernel<float, group>{
                attributes, at[0], at[1], at[2], nullptr, extents.rows, extents.columns, 1};
          },
          program);
    });
  }
  if (inner == 1) return absl::OkStatus();
  AddKernel(
      index, {of_rows, loss},
      [=](const StepTensors& at) {
        return ExampleLossKernel{at[0], examples, inner, at[1]};
      },
      program);
  return absl::OkStatus();
}

absl::Status LossBackward(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  const auto& op = static_cast<const LossBackwardOp&>(*node.op);
  const LossAttributes attributes = op.attributes;
  const Shape shape = program.shape(node.inputs[0]);
  const MatrixExtents extents = PredictionExtents(shape);
  const double scale =
      (op.of_sum ? static_cast<double>(shape[0]) : 1.0) / static_cast<double>(extents.rows);
  const std::vector<TensorId> tensors = {program.tensor(node.inputs[0]),
                                         program.tensor(node.inputs[1]),
                                         program.Output(node.outputs[0])};
  if (attributes.kind == LossAttributes::Kind::kMeanSquaredError) {
    AddKernel(
        index, tensors,
        [=, by = scale * 2 / static_cast<double>(extents.columns),
         count = ElementCount(shape)](const StepTensors& at) {
          return SquaredErrorBackwardKernel{at[0], at[1], at[2], by, count};
        },
        program);
    return absl::OkStatus();
  }
  WithGroup(extents.columns, [&]<int group>(std::integral_constant<int, group>) {
    AddKernel(
        index, tensors,
        [=](const StepTensors& at) {
          return CrossEntropyKernel<float, group>{
              attributes, at[0],        at[1],           nullptr,
              at[2],      extents.rows, extents.columns, static_cast<float>(scale)};
        },
        program);
  });
  return absl::OkStatus();
}

absl::Status Gather(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  const MatrixExtents table(program.shape(node.inputs[0]));
  const int64_t count = program.count(node.inputs[1]);
  WithWidth<float>(table.columns, [&]<int width>(std::integral_constant<int, width>) {
    AddKernel(
        index,
        {program.tensor(node.inputs[0]), program.tensor(node.inputs[1]),
         program.Output(node.outputs[0])},
        [=](const StepTensors& at) {
          return GatherKernel<float, width>{
              at[0], at[1], table.rows, static_cast<int32_t>(table.columns), count, at[2]};
        },
        program);
  });
  return absl::OkStatus();
}

absl::Status GatherBackward(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  const MatrixExtents table(program.shape(node.outputs[0]));
  const int64_t count = program.count(node.inputs[0]);
  const TensorId keys = program.Scratch<int32_t>(count), sorted = program.Scratch<int32_t>(count);
  const TensorId places = program.Scratch<int32_t>(count);
  const TensorId dtable = program.Output(node.outputs[0]);
  AddKernel(
      index, {program.tensor(node.inputs[0]), keys},
      [=](const StepTensors& at) {
        return RowKeysKernel{at[0], table.rows, count, at.At<int32_t>(1)};
      },
      program);
  AddKernel(
      index, {keys, sorted, places},
      [=](const StepTensors& at) {
        return RankKeysKernel{at.At<int32_t>(0), count, at.At<int32_t>(1), at.At<int32_t>(2)};
      },
      program);
  const int64_t size = table.rows * table.columns;
  WithWidth<float>(size, [&]<int width>(std::integral_constant<int, width>) {
    AddKernel(
        index, {dtable},
        [size](const StepTensors& at) {
          return FillKernel<float, width>{0, at[0], size};
        },
        program);
  });
  WithWidth<float>(table.columns, [&]<int width>(std::integral_constant<int, width>) {
    AddKernel(
        index, {sorted, places, program.tensor(node.inputs[1]), dtable},
        [=](const StepTensors& at) {
          return GatherBackwardKernel<float, width>{at.At<int32_t>(0),
                                                    at.At<int32_t>(1),
                                                    at[2],
                                                    table.rows,
                                                    static_cast<int32_t>(table.columns),
                                                    count,
                                                    at[3]};
        },
        program);
  });
  return absl::OkStatus();
}

}  // namespace shoal::cuda
