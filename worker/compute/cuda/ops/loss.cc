#include "common/model/ops/loss.h"

#include <utility>

#include "worker/compute/cuda/kernels/loss.h"
#include "worker/compute/cuda/program/kernel_step.h"
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
  TensorList tensors;
  const auto prediction = tensors.Add(program.tensor(node.inputs[0]));
  const auto target = tensors.Add(program.tensor(node.inputs[1]));
  const auto row_loss = tensors.Add(of_rows);
  if (attributes.kind == LossAttributes::Kind::kMeanSquaredError) {
    AddKernel(
        node, std::move(tensors).Take(),
        [=](const StepTensors& at) {
          return SquaredErrorKernel{at[prediction], at[target], at[row_loss], extents.rows,
                                    extents.columns};
        },
        program);
  } else {
    WithGroup(extents.columns, [&]<int group>(std::integral_constant<int, group>) {
      AddKernel(
          node, std::move(tensors).Take(),
          [=](const StepTensors& at) {
            return CrossEntropyKernel<float, group>{
                attributes, at[prediction], at[target],      at[row_loss],
                nullptr,    extents.rows,   extents.columns, 1};
          },
          program);
    });
  }
  if (inner == 1) return absl::OkStatus();
  TensorList last;
  const auto from_rows = last.Add(of_rows), to_loss = last.Add(loss);
  AddKernel(
      node, std::move(last).Take(),
      [=](const StepTensors& at) {
        return ExampleLossKernel{at[from_rows], examples, inner, at[to_loss]};
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
  TensorList tensors;
  const auto prediction = tensors.Add(program.tensor(node.inputs[0]));
  const auto target = tensors.Add(program.tensor(node.inputs[1]));
  const auto gradient = tensors.Add(program.Output(node.outputs[0]));
  if (attributes.kind == LossAttributes::Kind::kMeanSquaredError) {
    AddKernel(
        node, std::move(tensors).Take(),
        [=, by = scale * 2 / static_cast<double>(extents.columns),
         count = ElementCount(shape)](const StepTensors& at) {
          return SquaredErrorBackwardKernel{at[prediction], at[target], at[gradient], by, count};
        },
        program);
    return absl::OkStatus();
  }
  WithGroup(extents.columns, [&]<int group>(std::integral_constant<int, group>) {
    AddKernel(
        node, std::move(tensors).Take(),
        [=](const StepTensors& at) {
          return CrossEntropyKernel<float, group>{
              attributes,   at[prediction], at[target],      nullptr,
              at[gradient], extents.rows,   extents.columns, static_cast<float>(scale)};
        },
        program);
  });
  return absl::OkStatus();
}

}  // namespace shoal::cuda
