#include "coordinator/steps/report_check.h"

#include "absl/strings/str_cat.h"

namespace shoal {
namespace {

// Checks the result of a step of this job, or of a batch of the test set, that has `examples`
// examples.
template <typename Result>
absl::Status CheckResult(const Result& result, const std::string& what, uint64_t examples,
                         int sums) {
  if (result.examples() != examples) {
    return absl::InvalidArgumentError(absl::StrCat("this worker reported ", result.examples(),
                                                   " examples of ", what, ", which has ",
                                                   examples));
  }
  if (result.metric_sums_size() == sums) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("this worker reported ", result.metric_sums_size(),
                                                 " sums of metrics; the job has ", sums));
}

}  // namespace

absl::Status ReportCheck::Step(const proto::StepDone& step) const {
  if (step.step() >= plan.total_steps()) {
    return absl::InvalidArgumentError(absl::StrCat("this worker reported step ", step.step(),
                                                   "; the job has the steps 0 to ",
                                                   plan.total_steps() - 1));
  }
  if (!step.already_applied()) {
    return CheckResult(step, absl::StrCat("step ", step.step()), plan.Range(step.step()).count,
                       metric_sums);
  }
  if (rounds.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "this worker reported step ", step.step(),
      " as part of a complete round, but the job's strategy, ", strategy, ", has no rounds"));
}

absl::Status ReportCheck::Batch(const proto::EvaluationDone& done, const StepPlan& batches) const {
  if (done.batch() >= batches.total_steps()) {
    return absl::InvalidArgumentError(absl::StrCat("this worker reported batch ", done.batch(),
                                                   " of the test set; the batches are 0 to ",
                                                   batches.total_steps() - 1));
  }
  return CheckResult(done, absl::StrCat("batch ", done.batch(), " of the test set"),
                     batches.Range(done.batch()).count, metric_sums);
}

}  // namespace shoal
