#include "tests/worker/compute/case_result.h"

#include <algorithm>
#include <memory>

#include "common/base/status_macros.h"
#include "common/model/model_layout.h"
#include "worker/compute/program/executable.h"

namespace shoal {

absl::StatusOr<CaseResult> ComputeCase(const OpCase& test_case, const TrainingGraph& training,
                                       PlanMode mode, Backend& backend) {
  // The shapes have no batch extent. The plan only counts the losses to add up.
  const int64_t examples = ElementCount(training.graph.value(training.loss_per_example).shape);
  const Plan plan(training, mode, examples);
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<Executable> executable, backend.Compile(plan));
  // A step that reads memory before it writes it shows by this.
  SHOAL_RETURN_IF_ERROR(backend.Poison(executable->memory_bytes()));
  const ModelLayout& layout = plan.layout();
  std::vector<float> parameters(layout.size), gradients(layout.size);
  for (size_t v = 0; v < layout.variables.size(); ++v) {
    std::copy(test_case.variables()[v].begin(), test_case.variables()[v].end(),
              parameters.begin() + layout.variables[v].offset);
  }
  CaseResult result;
  result.prediction.resize(ElementCount(plan.shape(training.prediction)));
  SHOAL_ASSIGN_OR_RETURN(
      const BatchResult sums,
      executable->Run({.job_seed = DoubleInterpreter::kJobSeed, .step = DoubleInterpreter::kStep},
                      {.inputs = {test_case.inputs().begin(), test_case.inputs().end()},
                       .parameters = parameters,
                       .gradients = gradients,
                       .prediction = result.prediction},
                      nullptr, nullptr));
  result.loss_sum = sums.loss_sum;
  for (const ModelLayout::Extent& extent : layout.variables) {
    const auto begin = gradients.begin() + extent.offset;
    result.gradients.emplace_back(begin, begin + extent.size);
  }
  return result;
}

void SetValues(const OpCase& test_case, DoubleInterpreter& interpreter) {
  for (size_t v = 0; v < test_case.variables().size(); ++v) {
    const std::vector<float>& values = test_case.variables()[v];
    interpreter.variable(static_cast<int>(v)).assign(values.begin(), values.end());
  }
  for (size_t i = 0; i < test_case.inputs().size(); ++i) {
    const std::vector<float>& values = test_case.inputs()[i];
    interpreter.input(static_cast<int>(i)).assign(values.begin(), values.end());
  }
}

double LeastGradient(double largest, double bound) {
  return std::max({0.01 * largest, 1e-7 / bound, 0.02});
}

}  // namespace shoal
