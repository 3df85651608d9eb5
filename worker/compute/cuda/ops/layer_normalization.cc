#include "common/model/ops/layer_normalization.h"

#include <utility>

#include "worker/compute/cuda/kernels/layer_normalization.h"
#include "worker/compute/cuda/ops/column_slices.h"
#include "worker/compute/cuda/program/kernel_step.h"

namespace shoal::cuda {

absl::Status LayerNormalization(const Node& node, CudaProgramBuilder& program) {
  const auto& op = static_cast<const LayerNormalizationOp&>(*node.op);
  const MatrixExtents extents(program.shape(node.inputs[0]));
  const ComputeDtype kept = program.stored_dtype(node);
  WithElement(kept, [&]<typename Element>(Element) {
    TensorList tensors;
    const auto x = tensors.Add<Element>(program.tensor(node.inputs[0], kept));
    const auto y = tensors.Add<Element>(program.Output(node.outputs[0], kept));
    TensorHandle<float> gamma, beta;
    if (op.scale) gamma = tensors.Add(program.tensor(node.inputs[1]));
    if (op.center) beta = tensors.Add(program.tensor(node.inputs[1 + op.scale]));
    WithGroup(extents.columns, [&]<int group>(std::integral_constant<int, group>) {
      AddKernel(
          node, std::move(tensors).Take(),
          [=, epsilon = static_cast<float>(op.epsilon)](const StepTensors& at) {
            return LayerNormalizationKernel<Element, group>{
                at[x], at[gamma], at[beta], at[y], extents.rows, extents.columns, epsilon};
          },
          program);
    });
  });
  return absl::OkStatus();
}

absl::Status LayerNormalizationBackward(const Node& node, CudaProgramBuilder& program) {
  const auto& op = static_cast<const LayerNormalizationBackwardOp&>(*node.op);
  const MatrixExtents extents(program.shape(node.inputs[0]));
  const ComputeDtype kept = program.stored_dtype(node);
  const TensorId x = program.tensor(node.inputs[0], kept);
  const TensorId dy = program.tensor(node.inputs[1], kept);
  const TensorId row_mean = program.Scratch(extents.rows),
                 row_factor = program.Scratch(extents.rows);
  WithElement(kept, [&]<typename Element>(Element) {
    TensorList tensors;
    const auto in = tensors.Add<Element>(x), of_dy = tensors.Add<Element>(dy);
    const auto dx = tensors.Add<Element>(program.Output(node.outputs[0], kept));
    const auto to_mean = tensors.Add(row_mean), to_factor = tensors.Add(row_factor);
    TensorHandle<float> gamma;
    if (op.scale) gamma = tensors.Add(program.tensor(node.inputs[2]));
    WithGroup(extents.columns, [&]<int group>(std::integral_constant<int, group>) {
      AddKernel(
          node, std::move(tensors).Take(),
          [=, epsilon = static_cast<float>(op.epsilon)](const StepTensors& at) {
            return LayerNormalizationBackwardKernel<Element, group>{
                at[in],        at[of_dy],    at[gamma],       at[dx], at[to_mean],
                at[to_factor], extents.rows, extents.columns, epsilon};
          },
          program);
    });
  });
  const auto add = [&]<typename Element, int width>(Element, std::integral_constant<int, width>) {
    using Terms = LayerNormalizationTerms<Element, width>;
    const ColumnSlices slices = SlicesOf(extents, width, program);
    const TensorId partial = program.Scratch(slices.count * Terms::kSums * extents.columns);
    TensorList tensors;
    const auto in = tensors.Add<Element>(x), of_dy = tensors.Add<Element>(dy);
    const auto of_mean = tensors.Add(row_mean), of_factor = tensors.Add(row_factor);
    const auto sums = tensors.Add(partial);
    AddKernel(
        node, std::move(tensors).Take(),
        [=](const StepTensors& at) {
          return ColumnSumsKernel<Terms>{
              {at[in], at[of_dy], at[of_mean], at[of_factor]}, slices, extents.columns, at[sums]};
        },
        program);
    TensorList last;
    const auto from = last.Add(partial);
    const auto dgamma = last.Add(program.Output(node.outputs[1]));
    const auto dbeta = last.Add(program.Output(node.outputs[2]));
    AddKernel(
        node, std::move(last).Take(),
        [=](const StepTensors& at) {
          return SumOfSlicesKernel<2>{
              at[from], slices.count, extents.columns, {at[dgamma], at[dbeta]}};
        },
        program);
  };
  WithPacks(kept, extents.columns, add);
  return absl::OkStatus();
}

}  // namespace shoal::cuda
