// The cuts of a TrainingRun: when it takes them, how it handles their results, and how the last one
// ends it.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/log/logging.h"
#include "coordinator/training_run.h"

namespace shoal {

// Ends the job, or begins the next cut, if either is due.
void TrainingRun::PlanCut() {
  closing_->GiveUpCutAhead();
  if (!checkpointer_->idle()) return;
  const std::optional<StoredCheckpoint>& last = checkpointer_->last();
  const bool final_is_stored = training() && last.has_value() && last->manifest.finished() &&
                               last->manifest.cut_step == plan_->total_steps();
  const bool decides = training() && awaits_results();
  if (handout_->steps().finished() && final_is_stored && handout_->evaluation() == nullptr &&
      !decides) {
    return SaveModel(*last);
  }
  if (closing_->closing()) return closing_->Plan();
  // Before that, the evaluated epochs are not known.
  if (training() && !history_->read()) return;
  if (decides && HasAllToDecide()) {
    // The checkpoint proves that all steps of the epoch are done. Their last reports may still be
    // on the way.
    if (cuts_->epoch() < history_->closed_epochs()) Decide();
    return;
  }
  if (decides && EvaluatorDecides()) return;
  const bool asked = requests_->checkpoint_wanted();
  if ((final_is_stored && !decides) || !(training() || asked)) return;
  const bool evaluated = history_->IsEvaluated(cuts_->epoch()) || LeftToEvaluator();
  if (const auto due = cuts_->Due(options_.loop->Now(), Steps(), asked, evaluated)) BeginCut(*due);
}

CutPlan::Steps TrainingRun::Steps() const {
  return {.first_unleased = handout_->CutTarget(),
          .leased = handout_->steps().leased_count(),
          .per_second = progress_.steps_per_second(options_.loop->Now())};
}

void TrainingRun::BeginCut(const CutPlan::Cut& cut) {
  if (cuts_->NeedsFreshTerm(cut.step)) fleet_->RenewTerm();
  cuts_->Began(cut.step, options_.loop->Now());
  drain_checkpoint_ = closing_->closing();
  if (cut.hold) evaluator_->WarnEvaluatorMissing();
  Checkpointer::Cut begun = {
      .timeline = opened_->timeline, .step = cut.step, .term = fleet_->term(), .hold = cut.hold};
  if (plan_.has_value()) {
    begun.epoch = cut.step == 0 ? 0 : plan_->EpochOf(cut.step - 1);
    const uint64_t epoch_first_step = begun.epoch * plan_->steps_per_epoch();
    begun.epoch_position =
        std::min<uint64_t>((cut.step - epoch_first_step) * plan_->batch_size(), plan_->examples());
    begun.total_steps = plan_->total_steps();
    begun.training_examples = plan_->examples();
    begun.test_examples = test_examples_;
    progress_.BeginCut(cut.step, begun.epoch);
  }
  checkpointer_->Begin(begun);
}

void TrainingRun::OnCutAccepted(uint64_t step) {
  if (!handout_->open()) return;
  cuts_->Accepted(step, options_.loop->Now());
  Advance();
}

void TrainingRun::OnCutReady(uint64_t step) {
  // Only a held cut is evaluated. It belongs to the epoch before the running one.
  if (!training() || !checkpointer_->held()) return;
  handout_->BeginEvaluation(std::make_unique<Evaluation>(
      cuts_->cut_epoch(), step, TestBatches().total_steps(), progress_.metric_sum_count(),
      FromSeconds(options_.job.strategy.lease_timeout_seconds)));
  Advance();
}

void TrainingRun::OnCommitted(const StoredCheckpoint& checkpoint) {
  LogInfo(absl::StrCat("checkpoint ", checkpoint.directory, " (", checkpoint.size_bytes() >> 10,
                       " KiB)"));
  if (!checkpoint.manifest.finite()) {
    LogWarning(absl::StrCat("values in \"", checkpoint.manifest.not_finite, "\" of ",
                            checkpoint.directory, " are not finite numbers. ", AfterNan()));
  }
  requests_->OnCommitted(checkpoint);
  evaluator_->Add(checkpoint);
}

void TrainingRun::OnCutGivenUp(uint64_t step, const std::string& why,
                               std::optional<uint64_t> highest_step) {
  requests_->RefuseCheckpoints(why);
  handout_->EndEvaluation();
  const bool over = !handout_->open();  // the timeline
  cuts_->GivenUp(step, highest_step, over ? CutPlan::Steps() : Steps(), options_.loop->Now());
  if (over) return;
  // A ps may refuse the cut because it has applied more than the coordinator knew: after a
  // takeover, a step of a worker that was lost before.
  if (training() && closing_->closing() && highest_step.has_value())
    handout_->steps().WasBegun(*highest_step);
  const bool refused_below = highest_step.has_value() && step < handout_->CutTarget();
  // Only the last cut counts here, not one that was begun before the closing.
  if (closing_->closing() && drain_checkpoint_ && step <= handout_->CutTarget() && !refused_below)
    closing_->NotWritten(why, highest_step.has_value());
}

absl::StatusOr<OperatorRequests::Wanted> TrainingRun::WantedNow() const {
  if (ending_->over()) return absl::UnavailableError("no checkpoint: the coordinator stops");
  const std::optional<StoredCheckpoint>& last = checkpointer_->last();
  if (!ending_->working() && last.has_value())  // the final one
    return OperatorRequests::Wanted{last->manifest.timeline, last->manifest.cut_step};
  if (!handout_->open() || closing_->NothingToKeep()) {
    const std::vector<std::string> waiting = View().Waiting();
    return absl::UnavailableError(absl::StrCat("no steps are being done now",
                                               waiting.empty() ? "" : ", waiting for ",
                                               absl::StrJoin(waiting, "; ")));
  }
  return OperatorRequests::Wanted{opened_->timeline, handout_->KeepableBelow()};
}

bool TrainingRun::HasAllToDecide() const {
  const std::optional<StoredCheckpoint>& last = checkpointer_->last();
  return history_->IsEvaluated(cuts_->epoch()) && last.has_value() &&
         last->manifest.cut_step == cuts_->mandatory();
}

bool TrainingRun::EvaluatorDecides() const {
  const std::optional<StoredCheckpoint>& last = checkpointer_->last();
  return last.has_value() && last->manifest.cut_step == cuts_->mandatory() &&
         last->manifest.epoch == cuts_->epoch() && LacksResult(*last) &&
         evaluator_->WillBring(*last);
}

bool TrainingRun::LeftToEvaluator() const {
  const uint64_t epoch = cuts_->epoch();
  if (!plan_.has_value() || epoch >= plan_->epochs()) return false;
  // A late cut includes steps of the next epoch. Only the workers can evaluate it for this epoch,
  // while it is held.
  if (cuts_->mandatory() != plan_->EpochEnd(epoch)) return false;
  // If the checkpoint exists, and the step is cut again, the evaluator has not brought its result.
  const std::optional<StoredCheckpoint>& last = checkpointer_->last();
  const bool there = last.has_value() && last->manifest.cut_step == cuts_->mandatory();
  return !there && evaluator_->Takes(epoch);
}

void TrainingRun::Decide() {
  const uint64_t epoch = cuts_->epoch();
  const auto asked = [this, epoch, timeline = opened_->timeline] {
    if (!training() || opened_->timeline != timeline || !ending_->working()) return false;
    return cuts_->epoch() == epoch && HasAllToDecide();
  };
  history_->Decide(epoch, asked, [this] { OnDecided(); });
}

void TrainingRun::OnDecided() {
  StoredCheckpoint newest = *checkpointer_->last();
  newest.manifest.total_steps = plan_->total_steps();  // the job may have been extended since
  const RunVerdict& verdict = history_->verdict();
  if (const auto end = EndOfRun(options_.job.callbacks, verdict, newest)) {
    for (const std::string& line : DescribeVerdict(verdict)) LogInfo(line);
    return SaveModel(end->result);
  }
  cuts_->EpochDecided();
  Advance();
}

void TrainingRun::FinishEvaluation() {
  const std::unique_ptr<Evaluation> done = handout_->EndEvaluation();
  // An evaluator that came meanwhile may have brought the same result faster.
  if (!history_->IsEvaluated(done->epoch()))
    history_->SetTestResult(done->epoch(), done->loss(), done->metric_sums(), done->examples());
  checkpointer_->Release();
  Advance();
}

void TrainingRun::SaveModel(const StoredCheckpoint& result, bool found) {
  if (!result.manifest.finite()) {
    return EndForNan(absl::StrCat("all steps are done, but values in \"",
                                  result.manifest.not_finite, "\" of the last checkpoint, ",
                                  result.directory, ", are not finite numbers; no model is saved. ",
                                  AfterNan()));
  }
  ending_->Save({.values = result, .last = checkpointer_->last(), .found = found});
}

void TrainingRun::EndForNan(const std::string& why) {
  if (ending_->working()) ending_->Fail(why);
}

}  // namespace shoal
