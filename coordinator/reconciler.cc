#include "coordinator/reconciler.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log/logging.h"
#include "coordinator/outcomes.h"

namespace shoal {

void Reconciler::Turn(Wakeup::Cause cause) {
  const std::set<StepDispatcher::WorkerKey> reported = std::exchange(parts_.reported, {});
  if (cause == Wakeup::Cause::kReports && reported.empty()) return;  // the tick served them
  // 1. End a run that cannot go on, or restore the ps (sections 7 and 8 of the protocol).
  EndOrRestore();
  // 2. Record the outcomes that the parts have kept.
  RecordOutcomes(&parts_);
  parts_.requests->AdmitCheckpoints();
  if (const std::optional<RunEnd> end = parts_.fleet->TakeEnd()) EndFinishedJob(*end);
  if (Plan()) Serve(cause, reported);
}

void Reconciler::Tick() {
  EndOrRestore();  // before the drain waits any longer
  RecordOutcomes(&parts_);
  parts_.drain->BeforePlan();
  Turn(Wakeup::Cause::kFacts);
  parts_.drain->AfterPlan();
}

void Reconciler::EndOrRestore() {
  if (const auto failure = std::exchange(parts_.failure, std::nullopt)) {
    if (failure->ends_ps && parts_.shutdown->working()) {
      parts_.shutdown->Fail(std::string(failure->status.message()));
    } else {
      parts_.shutdown->BreakOff(failure->status);
    }
  }
  parts_.drain->CloseEarly();
  const auto abandoned = std::exchange(parts_.abandoned, std::nullopt);
  // The ps may have made the fleet start over meanwhile, with the same result.
  if (!abandoned.has_value() || !parts_.working() ||
      parts_.fleet->phase() != PsFleet::Phase::kLeading ||
      parts_.fleet->timeline() != abandoned->timeline)
    return;
  abandoned->remedy == AbandonedTimeline::Remedy::kRestore
      ? parts_.fleet->Restore(abandoned->why)
      : parts_.fleet->ClaimAgain(abandoned->why);
}

bool Reconciler::Plan() {
  // A run that ends, or that has no timeline, needs no plan (sections 2 and 8 of the protocol).
  if (!parts_.scheduler->open() || !parts_.working()) return false;
  // 3. Count the complete rounds, and close the epochs whose steps are all done.
  parts_.CountRounds();
  if (parts_.training()) {
    parts_.history->CloseUpTo(parts_.scheduler->steps().base());
    parts_.evaluator->SendNext();
  }
  // 4. End the job or run the callbacks, or 5. begin a cut (sections 6 and 8).
  PlanEndOrCut();
  if (!parts_.training() || !parts_.working()) return false;
  // 6. Limit the leases (sections 5 and 6).
  LimitLeases();
  return true;
}

void Reconciler::PlanEndOrCut() {
  parts_.drain->CancelCutAhead();
  RecordOutcomes(&parts_);  // before the next cut begins
  if (!parts_.checkpointer->idle()) return;
  parts_.fleet->ReopenOldStreams();  // before the next cut, which may follow at once
  const std::optional<StoredCheckpoint>& last = parts_.checkpointer->last();
  const bool final_is_stored = parts_.training() && last.has_value() && last->manifest.finished() &&
                               last->manifest.cut_step == parts_.plan->total_steps();
  const bool decides = parts_.training() && parts_.awaits_results();
  if (parts_.scheduler->steps().finished() && final_is_stored &&
      parts_.scheduler->evaluation() == nullptr && !decides) {
    return SaveModel(*last);
  }
  if (parts_.drain->closing()) {
    if (const std::optional<uint64_t> step = parts_.drain->Plan()) BeginCut({*step});
    return;
  }
  // The evaluated epochs are known once history.csv is read.
  if (parts_.training() && !parts_.history->read()) return;
  if (decides && HasAllToDecide()) {
    // The checkpoint proves that all steps of the epoch are done. Their last reports may still be
    // on the way.
    if (parts_.cuts->epoch() < parts_.history->closed_epochs()) RunCallbacks();
    return;
  }
  if (decides && EvaluatorDecides()) return;
  const bool asked = parts_.requests->checkpoint_wanted();
  if ((final_is_stored && !decides) || !(parts_.training() || asked)) return;
  const bool evaluated = parts_.history->IsEvaluated(parts_.cuts->epoch()) || LeftToEvaluator();
  if (const auto due =
          parts_.cuts->Due(parts_.options.loop->Now(), parts_.StepsNow(), asked, evaluated))
    BeginCut(*due);
}

void Reconciler::LimitLeases() {
  uint64_t limit = parts_.cuts->mandatory();
  if (!parts_.checkpointer->idle() && !parts_.checkpointer->accepted())
    limit = std::min(limit, parts_.checkpointer->step());
  if (parts_.drain->closing()) {
    // Lease no new step, but all steps that the last checkpoints need, also if a worker hands them
    // back.
    const uint64_t needed = parts_.checkpointer->idle() ? 0 : parts_.checkpointer->step();
    limit = std::min(limit, std::max(needed, parts_.scheduler->steps().first_unleased()));
    if (parts_.scheduler->revoking()) limit = 0;
  }
  parts_.scheduler->steps().set_limit(limit);
}

// 7. Serve the workers.
void Reconciler::Serve(Wakeup::Cause cause, const std::set<StepDispatcher::WorkerKey>& reported) {
  if (cause == Wakeup::Cause::kFacts) {
    // All of them: a worker that drains gives up its share.
    for (const auto& [key, worker] : parts_.membership->workers()) parts_.scheduler->Offer(*worker);
  } else {
    for (const StepDispatcher::WorkerKey key : reported) {
      const auto worker = parts_.membership->workers().find(key);
      if (worker != parts_.membership->workers().end()) parts_.scheduler->Offer(*worker->second);
    }
  }
  parts_.scheduler->ServeQueue();
  for (const uint64_t step : parts_.scheduler->TakeLeased())
    parts_.progress.EpochBegins(parts_.plan->EpochOf(step), parts_.options.loop->Now());
}

void Reconciler::BeginCut(const CutPlan::Cut& cut) {
  if (parts_.cuts->NeedsFreshTerm(cut.step)) parts_.fleet->RenewTerm();
  parts_.cuts->Began(cut.step, parts_.options.loop->Now());
  parts_.drain_cut = parts_.drain->closing();
  if (cut.hold) parts_.evaluator->WarnEvaluatorMissing();
  Checkpointer::Cut begun = {.timeline = parts_.opened->timeline,
                             .step = cut.step,
                             .term = parts_.fleet->term(),
                             .hold = cut.hold};
  if (parts_.plan.has_value()) {
    begun.epoch = cut.step == 0 ? 0 : parts_.plan->EpochOf(cut.step - 1);
    const uint64_t epoch_first_step = begun.epoch * parts_.plan->steps_per_epoch();
    begun.epoch_position = std::min<uint64_t>(
        (cut.step - epoch_first_step) * parts_.plan->batch_size(), parts_.plan->examples());
    begun.total_steps = parts_.plan->total_steps();
    begun.training_examples = parts_.plan->examples();
    begun.test_examples = parts_.test_examples;
    parts_.progress.BeginCut(cut.step, begun.epoch);
  }
  parts_.checkpointer->Begin(begun);
}

bool Reconciler::HasAllToDecide() const {
  const std::optional<StoredCheckpoint>& last = parts_.checkpointer->last();
  return parts_.history->IsEvaluated(parts_.cuts->epoch()) && last.has_value() &&
         last->manifest.cut_step == parts_.cuts->mandatory();
}

bool Reconciler::EvaluatorDecides() const {
  const std::optional<StoredCheckpoint>& last = parts_.checkpointer->last();
  return last.has_value() && last->manifest.cut_step == parts_.cuts->mandatory() &&
         last->manifest.epoch == parts_.cuts->epoch() && parts_.LacksResult(*last) &&
         parts_.evaluator->WillBring(*last);
}

bool Reconciler::LeftToEvaluator() const {
  const uint64_t epoch = parts_.cuts->epoch();
  if (!parts_.plan.has_value() || epoch >= parts_.plan->epochs()) return false;
  // A late cut includes steps of the next epoch. Only the workers can evaluate it for this epoch,
  // while it is held.
  if (parts_.cuts->mandatory() != parts_.plan->EpochEnd(epoch)) return false;
  // If the checkpoint exists, and the step is cut again, the evaluator has not brought its result.
  const std::optional<StoredCheckpoint>& last = parts_.checkpointer->last();
  const bool there = last.has_value() && last->manifest.cut_step == parts_.cuts->mandatory();
  return !there && parts_.evaluator->Takes(epoch);
}

void Reconciler::RunCallbacks() {
  const uint64_t epoch = parts_.cuts->epoch();
  const auto still_due = [this, epoch, timeline = parts_.opened->timeline] {
    if (!parts_.training() || parts_.opened->timeline != timeline || !parts_.working())
      return false;
    return parts_.cuts->epoch() == epoch && HasAllToDecide();
  };
  parts_.history->RunCallbacks(epoch, still_due, [this] { OnVerdict(); });
}

void Reconciler::OnVerdict() {
  StoredCheckpoint newest = *parts_.checkpointer->last();
  newest.manifest.total_steps = parts_.plan->total_steps();  // the job may have been extended since
  const RunVerdict& verdict = parts_.history->verdict();
  if (const auto end = EndOfRun(parts_.options.job.callbacks, verdict, newest)) {
    for (const std::string& line : DescribeVerdict(verdict)) LogInfo(line);
    return SaveModel(end->result);
  }
  parts_.cuts->EpochDecided();
  wakeup_.Raise();
}

// Section 8: a successor finds the final checkpoint and does the rest.
void Reconciler::EndFinishedJob(const RunEnd& end) {
  if (!parts_.working()) return;
  LogInfo("a former coordinator has finished the job: " + end.last.directory);
  parts_.checkpointer->SetLast(end.last);
  // For an evaluation that was in progress when the former coordinator was killed.
  if (parts_.plan.has_value())
    parts_.history->Begin(*parts_.plan, end.last.manifest.cut_step, nullptr);
  SaveModel(end.result, /*found=*/true);
}

void Reconciler::SaveModel(const StoredCheckpoint& result, bool found) {
  if (!result.manifest.finite()) {
    return parts_.shutdown->Fail(
        absl::StrCat("all steps are done, but values in \"", result.manifest.not_finite,
                     "\" of the last checkpoint, ", result.directory,
                     ", are not finite numbers; no model is saved. ", parts_.nan_watch->Advice()));
  }
  parts_.shutdown->Save({.values = result, .last = parts_.checkpointer->last(), .found = found});
}

}  // namespace shoal
