// How a TrainingRun handles the results of its cuts. Reconciler decides when a cut begins.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/log/logging.h"
#include "coordinator/training_run.h"

namespace shoal {

void TrainingRun::OnCutAccepted(uint64_t step) {
  if (!parts_.scheduler->open()) return;
  parts_.cuts->Accepted(step, parts_.options.loop->Now());
  reconciler_.wakeup().Raise();
}

void TrainingRun::OnCutReady(uint64_t step) {
  // Only a held cut is evaluated. It belongs to the epoch before the running one.
  if (!parts_.training() || !parts_.checkpointer->held()) return;
  parts_.scheduler->BeginEvaluation(std::make_unique<Evaluation>(
      parts_.cuts->cut_epoch(), step, parts_.TestBatches().total_steps(),
      parts_.progress.metric_sum_count(),
      FromSeconds(parts_.options.job.strategy.lease_timeout_seconds)));
  reconciler_.wakeup().Raise();
}

void TrainingRun::OnCommitted(const StoredCheckpoint& checkpoint) {
  LogInfo(absl::StrCat("checkpoint ", checkpoint.directory, " (", checkpoint.size_bytes() >> 10,
                       " KiB)"));
  if (!checkpoint.manifest.finite()) {
    LogWarning(absl::StrCat("values in \"", checkpoint.manifest.not_finite, "\" of ",
                            checkpoint.directory, " are not finite numbers. ",
                            parts_.nan_watch->Advice()));
  }
  parts_.requests->OnCommitted(checkpoint);
  parts_.evaluator->Add(checkpoint);
}

void TrainingRun::OnCutGivenUp(uint64_t step, const std::string& why,
                               std::optional<uint64_t> highest_step) {
  parts_.requests->RefuseCheckpoints(why);
  parts_.scheduler->EndEvaluation();
  const bool over = !parts_.scheduler->open();  // the timeline
  parts_.cuts->GivenUp(step, highest_step, over ? CutPlan::Steps() : reconciler_.Steps(),
                       parts_.options.loop->Now());
  if (over) return;
  // A ps may refuse the cut because it has applied more than the coordinator knew: after a
  // takeover, a step of a worker that was lost before.
  if (parts_.training() && parts_.drain->closing() && highest_step.has_value())
    parts_.scheduler->steps().WasBegun(*highest_step);
  const bool refused_below = highest_step.has_value() && step < parts_.scheduler->CutTarget();
  // Only the last cut counts here, not one that was begun before the closing.
  if (parts_.drain->closing() && parts_.drain_cut && step <= parts_.scheduler->CutTarget() &&
      !refused_below)
    parts_.drain->NotWritten(why, highest_step.has_value());
}

absl::StatusOr<OperatorRequests::Wanted> TrainingRun::WantedNow() const {
  if (parts_.shutdown->over())
    return absl::UnavailableError("no checkpoint: the coordinator stops");
  const std::optional<StoredCheckpoint>& last = parts_.checkpointer->last();
  if (!parts_.shutdown->working() && last.has_value())  // the final one
    return OperatorRequests::Wanted{last->manifest.timeline, last->manifest.cut_step};
  if (!parts_.scheduler->open() || parts_.drain->NothingToKeep()) {
    const std::vector<std::string> waiting = View().Waiting();
    return absl::UnavailableError(absl::StrCat("no steps are being done now",
                                               waiting.empty() ? "" : ", waiting for ",
                                               absl::StrJoin(waiting, "; ")));
  }
  return OperatorRequests::Wanted{parts_.opened->timeline, parts_.scheduler->KeepableBelow()};
}

void TrainingRun::FinishEvaluation() {
  const std::unique_ptr<Evaluation> done = parts_.scheduler->EndEvaluation();
  // An evaluator that came meanwhile may have brought the same result faster.
  if (!parts_.history->IsEvaluated(done->epoch()))
    parts_.history->SetTestResult(done->epoch(), done->loss(), done->metric_sums(),
                                  done->examples());
  parts_.checkpointer->Release();
  reconciler_.wakeup().Raise();
}

}  // namespace shoal
