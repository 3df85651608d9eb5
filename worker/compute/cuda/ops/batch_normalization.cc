#include "common/model/ops/batch_normalization.h"

#include <type_traits>
#include <utility>

#include "worker/compute/cuda/kernels/batch_normalization.h"
#include "worker/compute/cuda/kernels/column_moments.h"
#include "worker/compute/cuda/ops/column_slices.h"
#include "worker/compute/cuda/program/kernel_step.h"
#include "worker/compute/plan/fused_ops.h"

namespace shoal::cuda {
namespace {

// gamma / sqrt(variance + epsilon); `gamma` may be kNoValue.
TensorId AddFactor(const Node& node, ValueId variance, ValueId gamma, double epsilon,
                   CudaProgramBuilder& program) {
  TensorId& factor = program.normalization_factor(variance, gamma, epsilon);
  if (factor >= 0) return factor;
  const int64_t columns = program.count(variance);
  factor = program.Scratch(columns);
  TensorList tensors;
  const auto of_variance = tensors.Add(program.tensor(variance)), to_factor = tensors.Add(factor);
  TensorHandle<float> of_gamma;
  if (gamma != kNoValue) of_gamma = tensors.Add(program.tensor(gamma));
  AddKernel(
      node, std::move(tensors).Take(),
      [=, epsilon = static_cast<float>(epsilon)](const StepTensors& at) {
        return NormalizationFactorKernel{at[of_variance], at[of_gamma], epsilon, columns,
                                         at[to_factor]};
      },
      program);
  return factor;
}

Clamp ClampOf(const FusedRelu& relu) {
  Clamp clamp = {.low = 0};
  if (relu.max_value >= 0) clamp.high = static_cast<float>(relu.max_value);
  return clamp;
}

// Mean, variance and factor of a batch.
template <typename Element, int width>
void AddStatistics(const Node& node, const MatrixExtents& extents, TensorId x, TensorId mean,
                   TensorId variance, TensorId factor, CudaProgramBuilder& program) {
  const auto& op = static_cast<const BatchNormalizationOp&>(*node.op);
  const ColumnSlices slices = SlicesOf(extents, width, program);
  const TensorId partial = program.Scratch(slices.count * 2 * extents.columns);
  TensorList tensors;
  const auto in = tensors.Add<Element>(x);
  const auto moments = tensors.Add(partial);
  AddKernel(
      node, std::move(tensors).Take(),
      [=](const StepTensors& at) {
        return ColumnMomentsKernel<Element, width>{at[in], slices, extents.columns, at[moments]};
      },
      program);
  TensorList last;
  const auto of_x = last.Add<Element>(x);
  const auto of_partial = last.Add(partial);
  const auto to_mean = last.Add(mean), to_variance = last.Add(variance);
  const auto to_factor = last.Add(factor);
  TensorHandle<float> gamma;
  if (op.scale) gamma = last.Add(program.tensor(node.inputs[3]));
  AddKernel(
      node, std::move(last).Take(),
      [=, epsilon = static_cast<float>(op.epsilon)](const StepTensors& at) {
        return BatchNormalizationStatisticsKernel<Element>{
            at[of_x], at[of_partial], slices,          extents.columns, at[gamma],
            epsilon,  at[to_mean],    at[to_variance], at[to_factor]};
      },
      program);
}

}  // namespace

absl::Status BatchNormalization(const Node& node, CudaProgramBuilder& program) {
  const auto& op = static_cast<const BatchNormalizationOp&>(*node.op);
  const MatrixExtents extents(program.shape(node.inputs[0]));
  const bool adds = dynamic_cast<const BatchNormalizationAddOp*>(&op) != nullptr;
  const FusedRelu* const relu = FindFusedRelu(op);
  const Clamp clamp = relu == nullptr ? Clamp() : ClampOf(*relu);
  const ComputeDtype kept = program.stored_dtype(node);
  const TensorId x = program.tensor(node.inputs[0], kept);
  const ValueId gamma = op.scale ? node.inputs[3] : kNoValue;
  const auto add = [&]<typename Element, int width>(Element, std::integral_constant<int, width>) {
    // The residual is converted before the statistics are computed.
    const TensorId residual = adds ? program.tensor(node.inputs.back(), kept) : -1;
    TensorId mean = program.tensor(node.inputs[1]), factor;
    if (program.builder().in_training_mode() && !op.frozen) {
      mean = program.Output(node.outputs[1]);
      factor = program.Scratch(extents.columns);
      program.normalization_factor(node.outputs[2], gamma, op.epsilon) = factor;
      AddStatistics<Element, width>(node, extents, x, mean, program.Output(node.outputs[2]), factor,
                                    program);
    } else {
      program.Bind(node.outputs[1], node.inputs[1]);
      program.Bind(node.outputs[2], node.inputs[2]);
      factor = AddFactor(node, node.inputs[2], gamma, op.epsilon, program);
    }
    TensorList tensors;
    const auto in = tensors.Add<Element>(x);
    const auto of_mean = tensors.Add(mean), of_factor = tensors.Add(factor);
    const auto out = tensors.Add<Element>(program.Output(node.outputs[0], kept));
    TensorHandle<Element> of_residual;
    if (adds) of_residual = tensors.Add<Element>(residual);
    TensorHandle<float> beta;
    if (op.center) beta = tensors.Add(program.tensor(node.inputs[3 + op.scale]));
    const auto slices = ColumnSlices::OfElements(extents.rows, extents.columns / width);
    const auto add_last = [&]<bool of_two>(std::bool_constant<of_two>) {
      AddKernel(
          node, std::move(tensors).Take(),
          [=](const StepTensors& at) {
            return BatchNormalizationKernel<Element, width, of_two>{
                at[in], at[of_residual], {at[of_mean], at[of_factor], at[beta]},
                clamp,  slices,          static_cast<int32_t>(extents.columns),
                at[out]};
          },
          program);
    };
    if (adds) {
      add_last(std::true_type());
    } else {
      add_last(std::false_type());
    }
  };
  WithPacks(kept, extents.columns, add);
  return absl::OkStatus();
}

// Three kernels: the sums of the gradients, the coefficients of each channel, dx.
absl::Status BatchNormalizationBackward(const Node& node, CudaProgramBuilder& program) {
  const auto op = AsFused(static_cast<const BatchNormalizationBackwardOp&>(*node.op));
  const MatrixExtents extents(program.shape(node.inputs[0]));
  const auto columns = static_cast<int32_t>(extents.columns);
  const ComputeDtype kept = program.stored_dtype(node);
  const Clamp clamp = op.relu.has_value() ? ClampOf(*op.relu) : Clamp();
  const auto tensor_at = [&](int input) { return program.tensor(node.inputs[input], kept); };
  const TensorId x = tensor_at(0);
  const TensorId result = op.has_result ? tensor_at(op.result()) : -1;
  const TensorId beta = op.center ? program.tensor(node.inputs[op.beta()]) : -1;
  const TensorId dy = tensor_at(1);
  const TensorId summand = op.has_summand ? tensor_at(op.summand()) : -1;
  const TensorId total = op.has_total() ? program.Output(node.outputs[op.total()], kept) : -1;
  // The first kernel clamps dy, or else stores the clamped total, which the last kernel then reads.
  const TensorId gradient = op.has_total() ? total : dy;
  const Clamp clamp_gradient = op.has_total() ? Clamp() : clamp;
  const TensorId mean = program.tensor(node.inputs[2]), variance = program.tensor(node.inputs[3]);
  const TensorId factor = AddFactor(
      node, node.inputs[3], op.scale ? node.inputs[op.gamma()] : kNoValue, op.epsilon, program);
  const TensorId by_mean = program.Scratch(columns), by_variance = program.Scratch(columns);
  const auto add = [&]<typename Element, int width>(Element, std::integral_constant<int, width>) {
    const ColumnSlices slices = SlicesOf(extents, width, program);
    const TensorId partial = program.Scratch(slices.count * 2 * columns);
    const auto add_sums = [&]<bool of_two>(std::bool_constant<of_two>) {
      TensorList tensors;
      const auto in = tensors.Add<Element>(x), of_dy = tensors.Add<Element>(dy);
      const auto of_mean = tensors.Add(mean), of_factor = tensors.Add(factor);
      const auto sums = tensors.Add(partial);
      TensorHandle<float> of_beta;
      if (op.center) of_beta = tensors.Add(beta);
      TensorHandle<Element> stored, of_result, of_summand;
      if (op.has_total()) stored = tensors.Add<Element>(total);
      if (op.has_result) of_result = tensors.Add<Element>(result);
      if (op.has_summand) of_summand = tensors.Add<Element>(summand);
      AddKernel(
          node, std::move(tensors).Take(),
          [=](const StepTensors& at) {
            return ColumnSumsKernel<BatchNormalizationBackwardTerms<Element, width, of_two>>{
                {at[in],
                 {at[of_dy],
                  at[of_summand],
                  at[of_result],
                  {at[of_mean], at[of_factor], at[of_beta]},
                  clamp},
                 at[stored]},
                slices,
                columns,
                at[sums]};
          },
          program);
    };
    if (op.has_summand) {
      add_sums(std::true_type());
    } else {
      add_sums(std::false_type());
    }
    TensorList tensors;
    const auto sums = tensors.Add(partial), of_variance = tensors.Add(variance);
    const auto dgamma = tensors.Add(program.Output(node.outputs[1]));
    const auto dbeta = tensors.Add(program.Output(node.outputs[2]));
    const auto to_mean = tensors.Add(by_mean), to_variance = tensors.Add(by_variance);
    TensorHandle<float> dbias;
    if (op.has_dbias) dbias = tensors.Add(program.Output(node.outputs[op.dbias()]));
    AddKernel(
        node, std::move(tensors).Take(),
        [=, epsilon = static_cast<float>(op.epsilon), frozen = op.frozen](const StepTensors& at) {
          return BatchNormalizationCoefficientsKernel{
              at[sums], slices.count, extents.rows, columns,     at[of_variance], epsilon,
              frozen,   at[dgamma],   at[dbeta],    at[to_mean], at[to_variance], at[dbias]};
        },
        program);
    TensorList last;
    const auto in = last.Add<Element>(x), of_gradient = last.Add<Element>(gradient);
    const auto of_mean = last.Add(mean), of_factor = last.Add(factor);
    const auto from_mean = last.Add(by_mean), from_variance = last.Add(by_variance);
    const auto dx = last.Add<Element>(program.Output(node.outputs[0], kept));
    TensorHandle<float> of_beta;
    if (op.center) of_beta = last.Add(beta);
    const auto element_slices = ColumnSlices::OfElements(extents.rows, columns / width);
    AddKernel(
        node, std::move(last).Take(),
        [=](const StepTensors& at) {
          return BatchNormalizationBackwardKernel<Element, width>{
              at[in],
              at[of_gradient],
              Normalization<width>{at[of_mean], at[of_factor], at[of_beta]},
              clamp_gradient,
              at[from_mean],
              at[from_variance],
              element_slices,
              columns,
              at[dx]};
        },
        program);
  };
  WithPacks(kept, columns, add);
  return absl::OkStatus();
}

}  // namespace shoal::cuda
