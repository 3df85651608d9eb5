#include "coordinator/outcomes.h"

#include <memory>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/log/logging.h"

namespace shoal {
namespace {

// Another process has used this term. Only a fresh one gets the next cut accepted.
void RecordOutcome(RunParts& parts, const Checkpointer::Superseded&) {
  if (parts.opened.has_value() && parts.fleet->phase() == PsFleet::Phase::kLeading)
    parts.fleet->RenewTerm();
}

void RecordOutcome(RunParts& parts, const Checkpointer::Accepted& cut) {
  if (parts.scheduler->open()) parts.cuts->Accepted(cut.step, parts.options.loop->Now());
}

void RecordOutcome(RunParts& parts, const Checkpointer::Ready& cut) {
  // Only a held cut is evaluated. It belongs to the epoch before the running one.
  if (!parts.training() || !parts.checkpointer->held()) return;
  parts.scheduler->BeginEvaluation(std::make_unique<Evaluation>(
      parts.cuts->cut_epoch(), cut.step, parts.TestBatches().total_steps(),
      parts.progress.metric_sum_count(),
      FromSeconds(parts.options.job.strategy.lease_timeout_seconds)));
}

void RecordOutcome(RunParts& parts, const Checkpointer::Committed& committed) {
  const StoredCheckpoint& checkpoint = committed.checkpoint;
  LogInfo(absl::StrCat("checkpoint ", checkpoint.directory, " (", checkpoint.size_bytes() >> 10,
                       " KiB)"));
  if (!checkpoint.manifest.finite()) {
    LogWarning(absl::StrCat("values in \"", checkpoint.manifest.not_finite, "\" of ",
                            checkpoint.directory, " are not finite numbers. ",
                            parts.nan_watch->Advice()));
  }
  parts.requests->OnCommitted(checkpoint);
  parts.evaluator->Add(checkpoint);
}

void RecordOutcome(RunParts& parts, const Checkpointer::Failed& failed) {
  parts.requests->RejectCheckpoints(failed.why);
}

void RecordOutcome(RunParts& parts, const Checkpointer::Cancelled& cut) {
  parts.requests->RejectCheckpoints(cut.why);
  parts.scheduler->EndEvaluation();
  const bool over = !parts.scheduler->open();  // the timeline
  parts.cuts->Cancelled(cut.step, cut.highest_step, over ? CutPlan::Steps() : parts.StepsNow(),
                        parts.options.loop->Now());
  if (over) return;
  // A ps may reject the cut because it has applied more than the coordinator knew: after a
  // takeover, a step of a worker that was lost before.
  if (parts.training() && parts.drain->closing() && cut.highest_step.has_value())
    parts.scheduler->steps().WasBegun(*cut.highest_step);
  const uint64_t target = parts.scheduler->CutTarget();
  const bool rejected_below = cut.highest_step.has_value() && cut.step < target;
  // Only the last cut counts here, not one that was begun before the closing.
  if (parts.drain->closing() && parts.drain_cut && cut.step <= target && !rejected_below)
    parts.drain->NotWritten(cut.why, cut.highest_step.has_value());
}

}  // namespace

void RecordOutcomes(RunParts* parts) {
  for (const Checkpointer::Outcome& outcome : parts->checkpointer->TakeOutcomes())
    std::visit([parts](const auto& each) { RecordOutcome(*parts, each); }, outcome);
  // The evaluator's results may have changed the best checkpoint.
  if (parts->evaluator->TakeWritten()) parts->history->ReadVerdict();
  // At the end, results of earlier coordinators may have been read late.
  if (!parts->shutdown->working()) parts->evaluator->SendNext();
  if (parts->evaluator->ended()) parts->shutdown->OnEvaluatorGone();
  parts->shutdown->OnWritten();
}

}  // namespace shoal
