#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/step_plan/round_plan.h"
#include "common/step_plan/step_plan.h"
#include "proto/coordinator.pb.h"

namespace shoal {

// Checks the reports of workers against the job. Both functions return kInvalidArgument if no
// worker of this job and its data can report this result.
struct ReportCheck {
  const StepPlan& plan;  // of the training examples
  const std::optional<RoundPlan>& rounds;
  int metric_sums = 0;          // of each report
  const std::string& strategy;  // of the job, for messages

  absl::Status Step(const proto::StepDone& step) const;
  // `batches`: those of the test set.
  absl::Status Batch(const proto::EvaluationDone& done, const StepPlan& batches) const;
};

}  // namespace shoal
