#include "worker/compute/program/batch_sums.h"

#include <algorithm>

#include "common/training_metric/metric.h"

namespace shoal {
namespace {

// The values that the caller passes for an input of the training graph. Empty if the graph lacks
// it.
std::span<const float> InputOf(const Plan& plan, const RunBuffers& buffers, ValueId value) {
  const std::vector<ValueId>& inputs = plan.graph().inputs();
  const auto found = std::find(inputs.begin(), inputs.end(), value);
  return found == inputs.end() ? std::span<const float>()
                               : buffers.inputs[found - inputs.begin()].floats();
}

}  // namespace

BatchResult SumsOf(const Plan& plan, const RunBuffers& buffers, std::span<const float> losses,
                   std::span<const float> prediction) {
  const TrainingGraph& training = plan.training_graph();
  BatchResult result = {.examples = plan.examples()};
  for (const float loss : losses) result.loss_sum += loss;
  result.metric_sums.resize(SumCount(plan.metrics()));
  AddToSums(plan.metrics(),
            {plan.shape(training.prediction), prediction, InputOf(plan, buffers, training.target),
             InputOf(plan, buffers, training.weights)},
            result.metric_sums);
  return result;
}

BatchResult ResultOf(const Plan& plan, std::span<const double> sums) {
  return {.examples = plan.examples(),
          .loss_sum = sums[0],
          .metric_sums = std::vector<double>(sums.begin() + 1, sums.end())};
}

}  // namespace shoal
