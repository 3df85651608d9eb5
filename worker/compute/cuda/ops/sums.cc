// Adds up the loss and the metrics of a batch on the device.

#include "worker/compute/cuda/ops/sums.h"

#include <algorithm>
#include <utility>

#include "worker/compute/cuda/kernels/batch_sums.h"
#include "worker/compute/cuda/program/kernel_step.h"

namespace shoal::cuda {
namespace {

constexpr NodeName kName = {.op = "Sums"};

// Sets sums[place] to the sum of `count` numbers, divided by `divisor`.
template <typename Number>
void AddSum(TensorId numbers, int64_t count, double divisor, TensorId sums, int64_t place,
            CudaProgramBuilder& program) {
  // A thread adds up some dozens of numbers before a further block helps.
  const int64_t grid =
      std::clamp<int64_t>(count / (32 * SumKernel<Number>::kThreads), 1, program.target().blocks);
  if (grid == 1) {
    TensorList tensors;
    const auto from = tensors.Add<Number>(numbers);
    const auto to = tensors.Add<double>(sums);
    AddKernel(
        kName, std::move(tensors).Take(),
        [=](const StepTensors& at) {
          return SumKernel<Number>{at[from], count, 1, divisor, at[to] + place};
        },
        program);
    return;
  }
  const TensorId partial = program.Scratch<double>(grid);
  TensorList tensors;
  const auto from = tensors.Add<Number>(numbers);
  const auto to_partial = tensors.Add<double>(partial);
  AddKernel(
      kName, std::move(tensors).Take(),
      [=](const StepTensors& at) {
        return SumKernel<Number>{at[from], count, grid, 1, at[to_partial]};
      },
      program);
  TensorList last;
  const auto from_partial = last.Add<double>(partial), to = last.Add<double>(sums);
  AddKernel(
      kName, std::move(last).Take(),
      [=](const StepTensors& at) {
        return SumKernel<double>{at[from_partial], grid, 1, divisor, at[to] + place};
      },
      program);
}

// The scores of all rows of the prediction, times the weights of their examples, if any.
struct Scores {
  TensorId tensor;
  int64_t rows, rows_of_example;
};
Scores AddScores(const RowScore& score, bool weighted, CudaProgramBuilder& program) {
  const TrainingGraph& training = program.builder().plan().training_graph();
  const Shape shape = program.shape(training.prediction);
  const int64_t columns = shape.size() > 1 ? shape.back() : 1;
  const int64_t rows = ElementCount(shape) / columns, rows_of_example = rows / shape[0];
  const TensorId scores = program.Scratch<double>(rows);
  TensorList tensors;
  const auto prediction = tensors.Add(program.tensor(training.prediction));
  const auto target = tensors.Add(program.tensor(training.target));
  const auto to_scores = tensors.Add<double>(scores);
  TensorHandle<float> weights;
  if (weighted) weights = tensors.Add(program.tensor(training.weights));
  WithGroup(columns, [&]<int group>(std::integral_constant<int, group>) {
    AddKernel(
        kName, std::move(tensors).Take(),
        [=](const StepTensors& at) {
          return RowScoreKernel<group>{score,      score.of_class(), at[prediction],
                                       at[target], at[weights],      rows,
                                       columns,    rows_of_example,  at[to_scores]};
        },
        program);
  });
  return {scores, rows, rows_of_example};
}

bool HasKernels(const Plan& plan) {
  const bool has_weights = plan.training_graph().weights != kNoValue;
  return std::ranges::all_of(plan.metrics(), [&](const std::shared_ptr<const Metric>& metric) {
    return metric->row_score().has_value() && (has_weights || !metric->weighted());
  });
}

}  // namespace

void AddSums(CudaProgramBuilder& program) {
  const Plan& plan = program.builder().plan();
  if (!plan.has_loss() || !HasKernels(plan)) return;
  program.builder().BeginWork("Sums");
  const TrainingGraph& training = plan.training_graph();
  const TensorId sums = program.Scratch<double>(1 + SumCount(plan.metrics()));
  AddSum<float>(program.tensor(training.loss_per_example), plan.examples(), 1, sums, 0, program);
  int64_t place = 1;
  for (const std::shared_ptr<const Metric>& metric : plan.metrics()) {
    const Scores scores = AddScores(*metric->row_score(), metric->weighted(), program);
    AddSum<double>(scores.tensor, scores.rows, static_cast<double>(scores.rows_of_example), sums,
                   place++, program);
    if (!metric->weighted()) continue;
    AddSum<float>(program.tensor(training.weights), plan.examples(), 1, sums, place++, program);
  }
  program.builder().SetSums(sums);
}

}  // namespace shoal::cuda
