#include "common/model/ops/layer_normalization.h"

#include <vector>

#include "worker/compute/cuda/kernel_step.h"
#include "worker/compute/cuda/kernels/layer_normalization.h"
#include "worker/compute/cuda/ops/column_slices.h"

namespace shoal::cuda {

absl::Status LayerNormalization(const Node& node, CudaProgramBuilder& program) {
  const auto& op = static_cast<const LayerNormalizationOp&>(*node.op);
  const MatrixExtents extents(program.shape(node.inputs[0]));
  const ComputeDtype kept = program.stored_dtype(node);
  std::vector<TensorId> tensors = {program.tensor(node.inputs[0], kept),
                                   program.Output(node.outputs[0], kept)};
  for (size_t i = 1; i < node.inputs.size(); ++i) tensors.push_back(program.tensor(node.inputs[i]));
  WithElement(kept, [&]<typename Element>(Element) {
    WithGroup(extents.columns, [&]<int group>(std::integral_constant<int, group>) {
      AddKernel(
          node, tensors,
          [=, scale = op.scale, center = op.center,
           epsilon = static_cast<float>(op.epsilon)](const StepTensors& at) {
            return LayerNormalizationKernel<Element, group>{at.At<Element>(0),
                                                            at.If(scale, 2),
                                                            at.If(center, 2 + scale),
                                                            at.At<Element>(1),
                                                            extents.rows,
                                                            extents.columns,
                                                            epsilon};
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
  std::vector<TensorId> tensors = {x, dy, program.Output(node.outputs[0], kept), row_mean,
                                   row_factor};
  if (op.scale) tensors.push_back(program.tensor(node.inputs[2]));
  WithElement(kept, [&]<typename Element>(Element) {
    WithGroup(extents.columns, [&]<int group>(std::integral_constant<int, group>) {
      AddKernel(
          node, tensors,
          [=, scale = op.scale, epsilon = static_cast<float>(op.epsilon)](const StepTensors& at) {
            return LayerNormalizationBackwardKernel<Element, group>{at.At<Element>(0),
                                                                    at.At<Element>(1),
                                                                    at.If(scale, 5),
                                                                    at.At<Element>(2),
                                                                    at[3],
                                                                    at[4],
                                                                    extents.rows,
                                                                    extents.columns,
                                                                    epsilon};
          },
          program);
    });
  });
  const auto add = [&]<typename Element, int width>(Element, std::integral_constant<int, width>) {
    using Terms = LayerNormalizationTerms<Element, width>;
    const ColumnSlices slices = SlicesOf(extents, width, program);
    const TensorId partial = program.Scratch(slices.count * Terms::kSums * extents.columns);
    AddKernel(
        node, {x, dy, row_mean, row_factor, partial},
        [=](const StepTensors& at) {
          return ColumnSumsKernel<Terms>{
              {at.At<Element>(0), at.At<Element>(1), at[2], at[3]}, slices, extents.columns, at[4]};
        },
        program);
    AddKernel(
        node, {partial, program.Output(node.outputs[1]), program.Output(node.outputs[2])},
        [=](const StepTensors& at) {
          return SumOfSlicesKernel<2>{at[0], slices.count, extents.columns, {at[1], at[2]}};
        },
        program);
  };
  WithPacks(kept, extents.columns, add);
  return absl::OkStatus();
}

}  // namespace shoal::cuda
