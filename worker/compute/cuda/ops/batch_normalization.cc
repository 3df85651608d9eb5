#include "common/model/ops/batch_normalization.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/model/ops/activation.h"
#include "worker/compute/cuda/kernel_step.h"
#include "worker/compute/cuda/kernels/batch_normalization.h"
#include "worker/compute/cuda/kernels/column_moments.h"
#include "worker/compute/cuda/ops/column_slices.h"

namespace shoal::cuda {
namespace {

// gamma / sqrt(variance + epsilon); `gamma` may be kNoValue.
TensorId AddFactor(int index, ValueId variance, ValueId gamma, double epsilon,
                   CudaProgram& program) {
  TensorId& factor = program.normalization_factor(variance, gamma, epsilon);
  if (factor >= 0) return factor;
  const int64_t columns = program.count(variance);
  factor = program.Scratch(columns);
  const bool scale = gamma != kNoValue;
  std::vector<TensorId> tensors = {program.tensor(variance), factor};
  if (scale) tensors.push_back(program.tensor(gamma));
  AddKernel(
      index, std::move(tensors),
      [=, epsilon = static_cast<float>(epsilon)](const StepTensors& at) {
        return NormalizationFactorKernel{at[0], at.If(scale, 2), epsilon, columns, at[1]};
      },
      program);
  return factor;
}

// The clamp of a plain ReLU (IsPlainRelu).
Clamp ClampOf(const ActivationAttributes& relu) {
  Clamp clamp = {.low = 0};
  if (relu.max_value >= 0) clamp.high = static_cast<float>(relu.max_value);
  return clamp;
}

// Mean, variance and factor of a batch.
template <typename Element, int width>
void AddStatistics(int index, const MatrixExtents& extents, TensorId x, TensorId mean,
                   TensorId variance, TensorId factor, CudaProgram& program) {
  const Node& node = program.node(index);
  const auto& op = static_cast<const BatchNormalizationOp&>(*node.op);
  const ColumnSlices slices = SlicesOf(extents, width, program);
  const TensorId partial = program.Scratch(slices.count * 2 * extents.columns);
  AddKernel(
      index, {x, partial},
      [=](const StepTensors& at) {
        return ColumnMomentsKernel<Element, width>{at.At<Element>(0), slices, extents.columns,
                                                   at[1]};
      },
      program);
  std::vector<TensorId> tensors = {x, partial, mean, variance, factor};
  if (op.scale) tensors.push_back(program.tensor(node.inputs[3]));
  AddKernel(
      index, std::move(tensors),
      [=, scale = op.scale, epsilon = static_cast<float>(op.epsilon)](const StepTensors& at) {
        return BatchNormalizationStatisticsKernel<Element>{at.At<Element>(0),
                                                           at[1],
                                                           slices,
                                                           extents.columns,
                                                           at.If(scale, 5),
                                                           epsilon,
                                                           at[2],
                                                           at[3],
                                                           at[4]};
      },
      program);
}

}  // namespace

absl::Status BatchNormalization(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  const auto& op = static_cast<const BatchNormalizationOp&>(*node.op);
  const MatrixExtents extents(program.shape(node.inputs[0]));
  const int sum = program.fusions().residual_sum[index];
  const int last = sum < 0 ? index : sum;
  const int relu = program.fusions().relu[last];
  Clamp clamp;
  if (relu >= 0)
    clamp = ClampOf(static_cast<const ActivationOp&>(*program.node(relu).op).attributes);
  const ComputeDtype kept = program.stored_dtype(relu < 0 ? last : relu);
  const TensorId x = program.tensor(node.inputs[0], kept);
  std::vector<TensorId> residual;  // none, or one
  if (sum >= 0) {
    const std::vector<ValueId>& summands = program.node(sum).inputs;
    residual = {program.tensor(summands[summands[0] == node.outputs[0] ? 1 : 0], kept)};
  }
  const ValueId gamma = op.scale ? node.inputs[3] : kNoValue;
  const auto add = [&]<typename Element, int width>(Element, std::integral_constant<int, width>) {
    TensorId mean = program.tensor(node.inputs[1]), factor;
    if (program.builder().training() && !op.frozen) {
      mean = program.Output(node.outputs[1]);
      factor = program.Scratch(extents.columns);
      program.normalization_factor(node.outputs[2], gamma, op.epsilon) = factor;
      AddStatistics<Element, width>(index, extents, x, mean, program.Output(node.outputs[2]),
                                    factor, program);
    } else {
      program.Bind(node.outputs[1], node.inputs[1]);
      program.Bind(node.outputs[2], node.inputs[2]);
      factor = AddFactor(index, node.inputs[2], gamma, op.epsilon, program);
    }
    std::vector<TensorId> tensors = {x, mean, factor, program.FusedOutput(last, kept)};
    tensors.insert(tensors.end(), residual.begin(), residual.end());
    if (op.center) tensors.push_back(program.tensor(node.inputs[3 + op.scale]));
    const auto slices = ColumnSlices::OfElements(extents.rows, extents.columns / width);
    const auto add_last = [&]<bool adds>(std::bool_constant<adds>) {
      AddKernel(
          index, std::move(tensors),
          [=, center = op.center](const StepTensors& at) {
            return BatchNormalizationKernel<Element, width, adds>{
                at.At<Element>(0),
                adds ? at.At<Element>(4) : nullptr,
                {at[1], at[2], at.If(center, 4 + adds)},
                clamp,
                slices,
                static_cast<int32_t>(extents.columns),
                at.At<Element>(3)};
          },
          program);
    };
    if (residual.empty()) {
      add_last(std::false_type());
    } else {
      add_last(std::true_type());
    }
  };
  WithPacks(kept, extents.columns, add);
  return absl::OkStatus();
}

absl::Status BatchNormalizationBackward(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  const auto& op = static_cast<const BatchNormalizationBackwardOp&>(*node.op);
  const MatrixExtents extents(program.shape(node.inputs[0]));
  const auto columns = static_cast<int32_t>(extents.columns);
  const ComputeDtype kept = program.stored_dtype(index);
  const TensorId x = program.tensor(node.inputs[0], kept);
  // With a fused ReLU gradient, dy is the gradient of the ReLU's output, and the clamp says where
  // the ReLU cut off.
  const Fusions::CutOff& cut_off = program.fusions().cut_off[index];
  const int residual_gradient = program.fusions().residual_gradient[index];
  const int relu_gradient = std::max(cut_off.relu_gradient, residual_gradient);  // one is -1
  std::vector<ValueId> summands = {node.inputs[1]};  // or two, whose sum is stored as dy
  Clamp clamp;
  std::vector<TensorId> beta;    // empty: 0
  std::vector<TensorId> result;  // empty, or the ReLU's output; its gradient is stored as dy
  if (relu_gradient >= 0) {
    const Node& relu = program.node(relu_gradient);
    summands = {relu.inputs[2]};
    clamp = ClampOf(static_cast<const ActivationBackwardOp&>(*relu.op).attributes);
    if (residual_gradient >= 0) result = {program.tensor(relu.inputs[1], kept)};
  }
  if (const int sum = program.fusions().gradient_sum[index]; sum >= 0)
    summands = program.node(sum).inputs;
  if (cut_off.relu_gradient >= 0) {
    const Node& forward = program.node(cut_off.normalization);
    if (static_cast<const BatchNormalizationOp&>(*forward.op).center)
      beta.push_back(program.tensor(forward.inputs[3 + op.scale]));
  }
  std::vector<TensorId> gradients;
  for (const ValueId summand : summands) gradients.push_back(program.tensor(summand, kept));
  const bool adds = gradients.size() > 1, has_result = !result.empty();
  const bool leaves = adds || has_result;
  std::vector<TensorId> left;  // empty, or the stored dy, complete once the sums are
  if (leaves) left = {program.Output(node.inputs[1], kept)};
  const TensorId clamped = leaves ? left[0] : gradients[0];
  const Clamp clamp_left = leaves ? Clamp() : clamp;
  const TensorId mean = program.tensor(node.inputs[2]), variance = program.tensor(node.inputs[3]);
  const TensorId factor =
      AddFactor(index, node.inputs[3], op.scale ? node.inputs[4] : kNoValue, op.epsilon, program);
  const TensorId by_mean = program.Scratch(columns), by_variance = program.Scratch(columns);
  const auto add = [&]<typename Element, int width>(Element, std::integral_constant<int, width>) {
    // From tensors 2 to 4, and beta, if any, at `at_beta`.
    const auto normalization = [center = !beta.empty()](const StepTensors& at, int at_beta) {
      return Normalization<width>{at[2], at[3], at.If(center, at_beta)};
    };
    const ColumnSlices slices = SlicesOf(extents, width, program);
    const TensorId partial = program.Scratch(slices.count * 2 * columns);
    std::vector<TensorId> tensors = {x, gradients[0], mean, factor, partial};
    for (const auto& more : {beta, left, result}) {  // with beta the others are empty
      tensors.insert(tensors.end(), more.begin(), more.end());
    }
    if (adds) tensors.push_back(gradients[1]);
    const auto add_sums = [&]<bool of_two>(std::bool_constant<of_two>) {
      AddKernel(
          index, std::move(tensors),
          [=](const StepTensors& at) {
            const Element* const y = has_result ? at.At<Element>(6) : nullptr;
            const Element* const other = of_two ? at.At<Element>(6 + has_result) : nullptr;
            return ColumnSumsKernel<BatchNormalizationBackwardTerms<Element, width, of_two>>{
                {at.At<Element>(0),
                 {at.At<Element>(1), other, y, normalization(at, 5), clamp},
                 leaves ? at.At<Element>(5) : nullptr},
                slices,
                columns,
                at[4]};
          },
          program);
    };
    if (adds) {
      add_sums(std::true_type());
    } else {
      add_sums(std::false_type());
    }
    tensors = {
        partial, variance,   program.Output(node.outputs[1]), program.Output(node.outputs[2]),
        by_mean, by_variance};
    const int zero_gradient = program.fusions().zero_gradient[index];
    if (zero_gradient >= 0) {
      tensors.push_back(program.Output(program.node(zero_gradient).outputs[0]));
    }
    AddKernel(
        index, std::move(tensors),
        [=, epsilon = static_cast<float>(op.epsilon), frozen = op.frozen](const StepTensors& at) {
          return BatchNormalizationCoefficientsKernel{
              at[0],  slices.count, extents.rows, columns, at[1], epsilon,
              frozen, at[2],        at[3],        at[4],   at[5], at.If(zero_gradient >= 0, 6)};
        },
        program);
    tensors = {
        x, clamped, mean, factor, by_mean, by_variance, program.Output(node.outputs[0], kept)};
    tensors.insert(tensors.end(), beta.begin(), beta.end());
    const auto element_slices = ColumnSlices::OfElements(extents.rows, columns / width);
    AddKernel(
        index, std::move(tensors),
        [=](const StepTensors& at) {
          return BatchNormalizationBackwardKernel<Element, width>{
              at.At<Element>(0), at.At<Element>(1), normalization(at, 7), clamp_left, at[4], at[5],
              element_slices,    columns,           at.At<Element>(6)};
        },
        program);
  };
  WithPacks(kept, columns, add);
  return absl::OkStatus();
}

}  // namespace shoal::cuda
