#include "common/model/ops/loss.h"

#include <vector>

#include "worker/compute/cuda/kernel_step.h"
#include "worker/compute/cuda/kernels/loss.h"
#include "worker/compute/op_math/loss_functions.h"

namespace shoal::cuda {
namespace {

MatrixExtents PredictionExtents(const Shape& prediction) {
  const int64_t columns = LossRowLength(prediction);
  return MatrixExtents({ElementCount(prediction) / columns, columns});
}

}  // namespace

absl::Status Loss(const Node& node, CudaProgramBuilder& program) {
  const LossAttributes attributes = static_cast<const LossOp&>(*node.op).attributes;
  const MatrixExtents extents = PredictionExtents(program.shape(node.inputs[0]));
  const int64_t examples = program.count(node.outputs[0]), inner = extents.rows / examples;
  const TensorId loss = program.Output(node.outputs[0]);
  const TensorId of_rows = inner == 1 ? loss : program.Scratch(extents.rows);
  const std::vector<TensorId> tensors = {program.tensor(node.inputs[0]),
                                         program.tensor(node.inputs[1]), of_rows};
  if (attributes.kind == LossAttributes::Kind::kMeanSquaredError) {
    AddKernel(
        node, tensors,
        [=](const StepTensors& at) {
          return SquaredErrorKernel{at[0], at[1], at[2], extents.rows, extents.columns};
        },
        program);
  } else {
    WithGroup(extents.columns, [&]<int group>(std::integral_constant<int, group>) {
      AddKernel(
          node, tensors,
          [=](const StepTensors& at) {
            return CrossEntropyKernel<float, group>{
                attributes, at[0], at[1], at[2], nullptr, extents.rows, extents.columns, 1};
          },
          program);
    });
  }
  if (inner == 1) return absl::OkStatus();
  AddKernel(
      node, {of_rows, loss},
      [=](const StepTensors& at) {
        return ExampleLossKernel{at[0], examples, inner, at[1]};
      },
      program);
  return absl::OkStatus();
}

absl::Status LossBackward(const Node& node, CudaProgramBuilder& program) {
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
        node, tensors,
        [=, by = scale * 2 / static_cast<double>(extents.columns),
         count = ElementCount(shape)](const StepTensors& at) {
          return SquaredErrorBackwardKernel{at[0], at[1], at[2], by, count};
        },
        program);
    return absl::OkStatus();
  }
  WithGroup(extents.columns, [&]<int group>(std::integral_constant<int, group>) {
    AddKernel(
        node, tensors,
        [=](const StepTensors& at) {
          return CrossEntropyKernel<float, group>{
              attributes, at[0],        at[1],           nullptr,
              at[2],      extents.rows, extents.columns, static_cast<float>(scale)};
        },
        program);
  });
  return absl::OkStatus();
}

}  // namespace shoal::cuda
