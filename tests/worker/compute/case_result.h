#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "tests/worker/compute/double_interpreter.h"
#include "tests/worker/compute/op_case.h"
#include "worker/compute/backend/backend.h"
#include "worker/compute/plan/plan.h"

namespace shoal {

// The outputs of an op case in one mode.
struct CaseResult {
  std::vector<float> prediction;
  std::vector<std::vector<float>> gradients;  // by variable; zeros unless the plan trains
  double loss_sum = 0;                        // over the examples, if the plan has a loss
};

// Returns what the backend computes of `training`, the case's training graph, with
// DoubleInterpreter's RunContext.
absl::StatusOr<CaseResult> ComputeCase(const OpCase& test_case, const TrainingGraph& training,
                                       PlanMode mode, Backend& backend);

// Sets the variables and inputs of an interpreter of the case's training graph.
void SetValues(const OpCase& test_case, DoubleInterpreter& interpreter);

// Returns ExpectNear's `least` for gradients of which the largest is `largest`. Some gradients are
// small differences of large sums, or all of them are. Then the rounding of numbers about 1 is no
// fault. Ops of a wide bound add up more of them, and sums below 0.02 lose more than it allows.
double LeastGradient(double largest, double bound);

}  // namespace shoal
