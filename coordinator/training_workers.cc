// The workers of a TrainingRun: their membership, work and reports.

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/log/logging.h"
#include "coordinator/training_run.h"

namespace shoal {
namespace {

// Max steps that a log line names.
constexpr size_t kMaxNamedSteps = 8;

}  // namespace

void TrainingRun::OnWorkerReady(Worker& worker, const proto::WorkerReady& ready) {
  if (ready.shard_map_fingerprint() != shard_map_->Fingerprint()) {
    return membership_->Reject(
        worker, "cuts the model into other shards than the coordinator: not the same build", true);
  }
  if (ready.training_examples() == 0)
    return membership_->Reject(worker, "sees no training examples", true);
  const ExampleCounts seen = {ready.training_examples(), ready.test_examples()};
  if (!plan_.has_value()) {
    if (options_.job.test.empty() != (seen.test == 0)) {
      return membership_->Reject(
          worker,
          absl::StrCat("sees ", seen.test, " test examples, where the job has ",
                       options_.job.test.empty() ? "no test set" : "a test set", " ($.data.test)"),
          true);
    }
    TakeCounts(seen,
               absl::StrCat("worker ", worker.index, " (", membership_->record(worker).address,
                            "), the first to say, sees"));
  }
  if (seen.training != plan_->examples() || seen.test != test_examples_) {
    return membership_->Reject(
        worker,
        absl::StrCat("sees ", seen.training, " training and ", seen.test, " test examples, where ",
                     counted_by_, " ", plan_->examples(), " and ", test_examples_,
                     ". Give all workers the same data; if these are the right ones, "
                     "stop the job (shoal drain chief --run_dir=",
                     options_.run_dir, ") and begin it anew with another --run_dir"),
        true);
  }
  const bool first = !std::exchange(worker_came_, true);
  // An operator may have ordered a drain meanwhile.
  Membership::Record& record = membership_->record(worker);
  worker.ready = record.state != Membership::Record::State::kDraining;
  if (worker.ready) record.state = Membership::Record::State::kUp;
  LogInfo(absl::StrCat("worker ", worker.index, " is ready"));
  if (!ending_->working()) return;  // the worker is told of the end as all others are
  if (opened_.has_value()) {
    Announce(worker);
    if (first) {
      BeginTraining();
    } else {
      handout_->Hold(worker);
    }
  }
  handout_->Offer(worker);
  handout_->ServeLine();
}

void TrainingRun::OnWorkerReport(Worker& worker, const proto::WorkerReport& report) {
  switch (report.kind_case()) {
    case proto::WorkerReport::kStepsDone:
      return OnStepsDone(worker, report.steps_done());
    case proto::WorkerReport::kEvaluationDone:
      return OnEvaluationDone(worker, report.evaluation_done());
    case proto::WorkerReport::kLeaving: {
      const proto::Leaving& leaving = report.leaving();
      Membership::Record& record = membership_->record(worker);
      record.state = Membership::Record::State::kLeft;
      record.detail = leaving.reason();
      LogWarning(absl::StrCat("worker ", worker.index, " leaves: ", leaving.reason()));
      worker.ready = false;
      handout_->Release(worker);
      return Advance();
    }
    case proto::WorkerReport::kDraining: {
      worker.ready = false;
      membership_->record(worker).state = Membership::Record::State::kDraining;
      if (Evaluation* const evaluation = handout_->evaluation())
        evaluation->batches().Release(worker.key);
      // The worker leaves once it has this order and has done all its leases.
      proto::WorkerOrder order;
      order.mutable_drain()->set_reason("as it says itself");
      worker.Send(order);
      return Advance();
    }
    case proto::WorkerReport::kHalted:
      if (handout_->OnHalted(worker, report.halted())) Advance();
      return;
    case proto::WorkerReport::kWaiting:
      worker.waiting = report.waiting();
      worker.waiting_at = options_.loop->Now();
      return;
    case proto::WorkerReport::kTimelineLost:
      // Usually a ps was restarted, and the next probe finds that. Otherwise an answer from before
      // the timeline misled the worker. It has dropped its leases, and the next tick announces the
      // timeline to it again.
      if (!opened_.has_value() || report.timeline_lost().timeline() != opened_->timeline) return;
      worker.lost_timeline = true;
      handout_->Release(worker);
      return Advance();
    default:
      return;
  }
}

void TrainingRun::OnWorkerGone(Worker& worker, const std::string& why) {
  requests_->OnWorkerGone(worker, why);
  const uint64_t returned = handout_->Forget(worker);
  if (ending_->job_ended()) return ending_->OnWorkerGone();
  LogWarning(absl::StrCat(
      "worker ", worker.index, " is gone (", why, ")",
      returned > 0 ? absl::StrCat("; ", returned, " of its steps are leased again") : ""));
  Advance();
}

// Checks the result of a step of this job, or of a batch of the test set, that has `examples`
// examples.
template <typename Result>
absl::Status TrainingRun::CheckResult(const Result& result, const std::string& what,
                                      uint64_t examples) const {
  if (result.examples() != examples) {
    return absl::InvalidArgumentError(absl::StrCat("reported ", result.examples(), " examples of ",
                                                   what, ", which has ", examples));
  }
  const int sums = progress_.metric_sum_count();
  if (result.metric_sums_size() == sums) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("reported ", result.metric_sums_size(),
                                                 " sums of metrics; those of the job have ", sums));
}

absl::Status TrainingRun::CheckStep(const proto::StepDone& step) const {
  if (step.step() >= plan_->total_steps()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "reported step ", step.step(), "; the job has the steps 0 to ", plan_->total_steps() - 1));
  }
  if (!step.was_in()) {
    return CheckResult(step, absl::StrCat("step ", step.step()), plan_->Range(step.step()).count);
  }
  if (rounds_.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("reported step ", step.step(),
                   " as one of a round that was complete before; the job's strategy, ",
                   options_.job.strategy.name, ", has no rounds"));
}

absl::Status TrainingRun::CheckBatch(const proto::EvaluationDone& done) const {
  const StepPlan batches = TestBatches();
  if (done.batch() >= batches.total_steps()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "reported batch ", done.batch(), " of the test set, which has ", batches.total_steps()));
  }
  return CheckResult(done, absl::StrCat("batch ", done.batch(), " of the test set"),
                     batches.Range(done.batch()).count);
}

void TrainingRun::CountStep(const proto::StepDone& step) {
  counters_.examples += step.examples();
  const Progress::Step counted = {
      .step = step.step(),
      .epoch = plan_->EpochOf(step.step()),
      .examples = step.examples(),
      .loss_sum = step.loss_sum(),
      .metric_sums = {step.metric_sums().begin(), step.metric_sums().end()}};
  const Time now = options_.loop->Now();
  rounds_.has_value() ? progress_.StepOfRound(counted, now) : progress_.StepDone(counted, now);
}

void TrainingRun::OnStepsDone(Worker& worker, const proto::StepsDone& done) {
  worker.waiting.Clear();
  membership_->record(worker).expiries = 0;
  if (!training() || done.timeline() != opened_->timeline) return;
  handout_->OnReport(worker, static_cast<int>(std::count_if(
                                 done.steps().begin(), done.steps().end(),
                                 [](const proto::StepDone& step) { return !step.was_in(); })));
  for (const proto::StepDone& step : done.steps()) {
    if (const absl::Status sound = CheckStep(step); !sound.ok())
      return membership_->Reject(worker, std::string(sound.message()), true);
    if (!handout_->Done(worker, step.step())) continue;
    ++counters_.steps_done;
    // The ps had applied it before. Its worker has reported its results, or is gone with them.
    if (step.was_in()) continue;
    ++membership_->record(worker).steps_done;
    if (counted_.erase(step.step()) == 0) CountStep(step);
    NoteLoss(step.step(), step.loss_sum(), worker);
    if (!ending_->working()) return;
  }
  // Serves only this worker and those in the queue. This keeps the cost of a report independent of
  // the number of workers.
  if (!Plan()) return;
  handout_->Offer(worker);
  handout_->ServeLine();
}

// Section 5: a done step is applied on every ps, otherwise its report was false. The steps below
// claimed.done_below() were reported before the claim was sent, so the ps must have applied them.
void TrainingRun::CompareWithPs(int ps, const proto::Claimed& claimed) {
  if (!ending_->working()) return;
  if (!training()) return TakeApplied();
  if (const uint64_t told = claimed.training_examples(); told != 0 && told != plan_->examples()) {
    return fleet_->Restore(absl::StrCat("ps ", ps, " at ", options_.ps_addresses[ps], " goes by ",
                                        told, " training examples, the job by ",
                                        plan_->examples()));
  }
  const uint64_t done = std::min(claimed.done_below(), handout_->steps().base());
  uint64_t confirmed = done;
  for (int each = 0; each < fleet_->size(); ++each) {
    const std::optional<proto::Claimed>& latest = fleet_->peer(each).claimed;
    confirmed = std::min(confirmed, latest.has_value() ? latest->base() : 0);
  }
  handout_->reports().Confirm(confirmed);
  const StepReports::Lack lack =
      handout_->reports().LackOf(claimed, done, options_.job.strategy.window_steps);
  if (!lack.any()) return;
  const std::string where = absl::StrCat("ps ", ps, " at ", options_.ps_addresses[ps]);
  if (lack.untold) {
    fleet_->ClaimAgain(absl::StrCat("all steps below ", done, " were reported as done, but ", where,
                                    " has applied only those below ", claimed.base()));
  } else {
    const std::vector<uint64_t> named(
        lack.steps.begin(), lack.steps.begin() + std::min(lack.steps.size(), kMaxNamedSteps));
    LogError(absl::StrCat(
        where, " has not applied ", lack.steps.size(), lack.steps.size() == 1 ? " step" : " steps",
        " reported as done (", absl::StrJoin(named, ", "),
        lack.steps.size() > named.size() ? ", ..." : "", "); they are leased again"));
    handout_->steps().Undo(lack.steps);
    counted_.insert(lack.steps.begin(), lack.steps.end());
  }
  for (const auto& [key, step] : lack.reporters) {
    const auto worker = membership_->workers().find(key);
    if (worker == membership_->workers().end()) continue;
    membership_->Reject(*worker->second,
                        absl::StrCat("reported step ", step, " as done, which ", where,
                                     " has not applied: one of the two is broken, or not of this "
                                     "build"),
                        /*final=*/true);
  }
  Advance();
}

// Logs it once, because every later step will have the same problem.
void TrainingRun::NoteLoss(uint64_t step, double loss_sum, const Worker& worker) {
  if (std::isfinite(loss_sum)) {
    nan_steps_ = 0;
    return;
  }
  if (!std::exchange(warned_of_loss_, true)) {
    LogWarning(absl::StrCat("the loss of step ", step, ", computed by worker ", worker.index,
                            ", is not a finite number, and the variables hardly ever recover. ",
                            AfterNan()));
  }
  const uint64_t limit = options_.job.stop_after_nan_steps;
  if (++nan_steps_ < limit || limit == 0) return;
  EndForNan(absl::StrCat("the losses of ", nan_steps_, " steps in a row, up to step ", step,
                         ", were not finite numbers ($.stop_after_nan_steps). ", AfterNan()));
}

// The advice depends on the cause. With bad data the run can continue. Another learning rate makes
// another job, and a run directory that has a checkpoint does not accept another job.
std::string TrainingRun::AfterNan() const {
  const std::optional<StoredCheckpoint>& finite = checkpointer_->last_finite();
  const std::string where = " with --run_dir=" + options_.run_dir;
  if (!checkpointer_->newest().has_value()) {
    return absl::StrCat("If there is NaN in the data, mend it and start again", where,
                        ", which has no checkpoint yet: training begins at step 0; if the learning "
                        "rate is too high, lower it and begin anew with another --run_dir");
  }
  if (!finite.has_value()) {
    return absl::StrCat(
        "Lower the learning rate, or mend the data if there is NaN in it, and begin anew with "
        "another --run_dir: no checkpoint in ",
        options_.run_dir, " has values that are all finite");
  }
  return absl::StrCat("If there is NaN in the data, mend it and start again", where,
                      ", which goes on from ", finite->directory, " (step ",
                      finite->manifest.cut_step,
                      "), the newest checkpoint whose values are all finite; if the learning rate "
                      "is too high, lower it and begin anew with another --run_dir");
}

void TrainingRun::OnEvaluationDone(Worker& worker, const proto::EvaluationDone& done) {
  if (handout_->evaluation() == nullptr || done.timeline() != opened_->timeline ||
      done.cut_step() != handout_->evaluation()->cut_step()) {
    return;
  }
  if (const absl::Status sound = CheckBatch(done); !sound.ok())
    return membership_->Reject(worker, std::string(sound.message()), true);
  handout_->BatchDone(worker, done);
  if (handout_->evaluation()->finished()) return FinishEvaluation();
  handout_->Offer(worker);
  handout_->ServeLine();
}

// --- The evaluator ---

absl::Status TrainingRun::CheckTestSet(const proto::EvaluatorReady& ready) const {
  if (ready.test_examples() == 0) return absl::InvalidArgumentError("sees no test examples");
  if (!plan_.has_value() || ready.test_examples() == test_examples_) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("sees ", ready.test_examples(), " test examples, where ", counted_by_, " ",
                   test_examples_, ". Give it the same data as the workers"));
}

// The result of an epoch that is not closed cannot be kept yet, and a restore may still drop the
// epoch.
bool TrainingRun::MayBeEvaluated(const StoredCheckpoint& checkpoint) const {
  if (!history_->takes_results()) return false;
  return !IsAtEpochEnd(checkpoint.manifest) ||
         checkpoint.manifest.epoch < history_->closed_epochs();
}

bool TrainingRun::LacksResult(const StoredCheckpoint& checkpoint) const {
  return IsAtEpochEnd(checkpoint.manifest) && !history_->IsEvaluated(checkpoint.manifest.epoch);
}

void TrainingRun::OnCheckpointEvaluated(const StoredCheckpoint& checkpoint,
                                        const CheckpointEvaluation::Options::Sums& sums) {
  if (!LacksResult(checkpoint)) return;
  history_->SetTestResult(checkpoint.manifest.epoch, sums.loss, sums.metrics, sums.examples);
}

}  // namespace shoal
