#include "coordinator/worker_reports.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/crc32c.h"
#include "common/base/text/shell_word.h"
#include "common/log/logging.h"

namespace shoal {
namespace {

// Max steps that a log line names.
constexpr size_t kMaxNamedSteps = 8;

}  // namespace

void WorkerReports::OnReady(Worker& worker, const proto::WorkerReady& ready) {
  if (ready.shard_map_fingerprint() != parts_.shard_map->Fingerprint()) {
    return parts_.membership->Reject(
        worker,
        absl::StrCat("this worker has the shard map ", ChecksumText(ready.shard_map_fingerprint()),
                     ", but the coordinator has ", ChecksumText(parts_.shard_map->Fingerprint()),
                     "; install one build on all machines"),
        true);
  }
  if (ready.training_examples() == 0)
    return parts_.membership->Reject(worker,
                                     "this worker sees no training examples ($.data.training); "
                                     "give it the same data as the other workers",
                                     true);
  const RunTimeline::ExampleCounts seen = {ready.training_examples(), ready.test_examples()};
  if (!parts_.plan.has_value()) {
    if (parts_.options.job.test.empty() != (seen.test == 0)) {
      return parts_.membership->Reject(
          worker,
          absl::StrCat("this worker sees ", seen.test, " test examples, but the job has ",
                       parts_.options.job.test.empty() ? "no test set" : "a test set",
                       " ($.data.test); give all workers the same data"),
          true);
    }
    timeline_.TakeCounts(seen, absl::StrCat("worker ", worker.index, " (",
                                            parts_.membership->record(worker).address, ")"));
  }
  if (seen.training != parts_.plan->examples() || seen.test != parts_.test_examples) {
    return parts_.membership->Reject(
        worker,
        absl::StrCat("this worker sees ", seen.training, " training and ", seen.test,
                     " test examples, but the run has ", parts_.plan->examples(), " and ",
                     parts_.test_examples, ", according to ", parts_.counts_source,
                     ". Give all workers the same data; if this worker has the right data, "
                     "stop the job (shoal drain chief ",
                     ShellWord(parts_.options.run_dir),
                     ") and start it again with another --run_dir"),
        true);
  }
  const bool first = !std::exchange(parts_.worker_came, true);
  // An operator may have ordered a drain meanwhile.
  Membership::Record& record = parts_.membership->record(worker);
  worker.ready = record.state != Membership::Record::State::kDraining;
  if (worker.ready) record.state = Membership::Record::State::kUp;
  LogInfo(absl::StrCat("worker ", worker.index, " is ready"));
  if (!parts_.working()) return;  // the shutdown dismisses it like all others
  if (parts_.opened.has_value()) {
    timeline_.Announce(worker);
    if (first) {
      timeline_.BeginTraining();
    } else {
      parts_.scheduler->Hold(worker);
    }
  }
  OfferWork(worker);
}

void WorkerReports::OfferWork(const Worker& worker) {
  parts_.reported.insert(worker.key);
  wakeup_.Raise(Wakeup::Cause::kReports);
}

void WorkerReports::OnReport(Worker& worker, const proto::WorkerReport& report) {
  switch (report.kind_case()) {
    case proto::WorkerReport::kStepsDone:
      return OnStepsDone(worker, report.steps_done());
    case proto::WorkerReport::kEvaluationDone:
      return OnEvaluationDone(worker, report.evaluation_done());
    case proto::WorkerReport::kLeaving: {
      const proto::Leaving& leaving = report.leaving();
      Membership::Record& record = parts_.membership->record(worker);
      record.state = Membership::Record::State::kLeft;
      record.detail = leaving.reason();
      LogWarning(absl::StrCat("worker ", worker.index, " leaves: ", leaving.reason()));
      worker.ready = false;
      parts_.scheduler->Release(worker);
      return wakeup_.Raise();
    }
    case proto::WorkerReport::kDraining: {
      worker.ready = false;
      parts_.membership->record(worker).state = Membership::Record::State::kDraining;
      if (Evaluation* const evaluation = parts_.scheduler->evaluation())
        evaluation->batches().Release(worker.key);
      // The worker leaves once it has this order and has done all its leases.
      proto::WorkerOrder order;
      order.mutable_drain()->set_reason("this worker asked to leave");
      worker.Send(order);
      return wakeup_.Raise();
    }
    case proto::WorkerReport::kHalted:
      if (parts_.scheduler->OnHalted(worker, report.halted())) wakeup_.Raise();
      return;
    case proto::WorkerReport::kWaiting:
      worker.waiting = report.waiting();
      worker.waiting_at = parts_.options.loop->Now();
      return;
    case proto::WorkerReport::kTimelineLost:
      // Usually a ps was restarted, and the next probe finds that. Otherwise an answer from before
      // the timeline misled the worker. It has dropped its leases, and the next tick announces the
      // timeline to it again.
      if (!parts_.opened.has_value() ||
          report.timeline_lost().timeline() != parts_.opened->timeline)
        return;
      worker.lost_timeline = true;
      parts_.scheduler->Release(worker);
      return wakeup_.Raise();
    default:
      return;
  }
}

void WorkerReports::OnGone(Worker& worker, const std::string& why) {
  parts_.requests->OnWorkerGone(worker, why);
  const uint64_t returned = parts_.scheduler->Forget(worker);
  if (parts_.shutdown->job_ended()) return parts_.shutdown->OnWorkerGone();
  LogWarning(absl::StrCat(
      "worker ", worker.index, " is gone (", why, ")",
      returned > 0 ? absl::StrCat("; ", returned, " of its steps are leased again") : ""));
  wakeup_.Raise();
}

void WorkerReports::OnReopened(const Worker& former, Worker& now) {
  // An order to drain may be lost with the former stream.
  parts_.requests->OnWorkerGone(former, "it has opened a new stream");
  if (parts_.scheduler->Move(former, now) > 0) wakeup_.Raise();
}

void WorkerReports::CountStep(const proto::StepDone& step) {
  parts_.counters.examples += step.examples();
  const Progress::Step counted = {
      .step = step.step(),
      .epoch = parts_.plan->EpochOf(step.step()),
      .examples = step.examples(),
      .loss_sum = step.loss_sum(),
      .metric_sums = {step.metric_sums().begin(), step.metric_sums().end()}};
  const Time now = parts_.options.loop->Now();
  parts_.rounds.has_value() ? parts_.progress.StepOfRound(counted, now)
                            : parts_.progress.StepDone(counted, now);
}

ReportCheck WorkerReports::Check() const {
  return {.plan = *parts_.plan,
          .rounds = parts_.rounds,
          .metric_sums = parts_.progress.metric_sum_count(),
          .strategy = parts_.options.job.strategy.name};
}

void WorkerReports::OnStepsDone(Worker& worker, const proto::StepsDone& done) {
  worker.waiting.Clear();
  parts_.membership->record(worker).expiries = 0;
  if (!parts_.training() || done.timeline() != parts_.opened->timeline) return;
  parts_.scheduler->OnReport(
      worker, static_cast<int>(std::count_if(
                  done.steps().begin(), done.steps().end(),
                  [](const proto::StepDone& step) { return !step.already_applied(); })));
  const ReportCheck check = Check();
  for (const proto::StepDone& step : done.steps()) {
    if (const absl::Status sound = check.Step(step); !sound.ok())
      return parts_.membership->Reject(worker, std::string(sound.message()), true);
    if (!parts_.scheduler->Done(worker, step.step())) continue;
    ++parts_.counters.steps_done;
    // The ps had applied it before. Its worker has reported its results, or is gone with them.
    if (step.already_applied()) continue;
    ++parts_.membership->record(worker).steps_done;
    if (parts_.counted.erase(step.step()) == 0) CountStep(step);
    const auto failure = parts_.nan_watch->OnLoss(step.step(), step.loss_sum(), worker.index);
    if (failure.has_value() && parts_.working()) {
      parts_.Fail({.status = absl::DataLossError(*failure), .ends_ps = true});
      wakeup_.Raise();
    }
    if (!parts_.working()) return;
  }
  OfferWork(worker);
}

// Section 5: a done step is applied on every ps, otherwise its report was false. The steps below
// claimed.done_below() were reported before the claim was sent, so the ps must have applied them.
void WorkerReports::CompareWithPs(int ps, const proto::Claimed& claimed) {
  if (!parts_.working() || !parts_.opened.has_value()) return;
  if (!parts_.training()) return timeline_.TakeApplied();
  if (const uint64_t told = claimed.training_examples();
      told != 0 && told != parts_.plan->examples()) {
    return timeline_.Abandon(
        absl::StrCat("ps ", ps, " at ", parts_.options.ps_addresses[ps], " uses ", told,
                     " training examples, the job uses ", parts_.plan->examples()),
        AbandonedTimeline::Remedy::kRestore);
  }
  const uint64_t done = std::min(claimed.done_below(), parts_.scheduler->steps().base());
  uint64_t confirmed = done;
  for (int each = 0; each < parts_.fleet->size(); ++each) {
    const std::optional<proto::Claimed>& latest = parts_.fleet->peer(each).claimed;
    confirmed = std::min(confirmed, latest.has_value() ? latest->base() : 0);
  }
  parts_.scheduler->reports().Confirm(confirmed);
  const StepReports::Lack lack =
      parts_.scheduler->reports().LackOf(claimed, done, parts_.options.job.strategy.window_steps);
  if (!lack.any()) return;
  const std::string where = absl::StrCat("ps ", ps, " at ", parts_.options.ps_addresses[ps]);
  if (lack.unnamed) {
    timeline_.Abandon(absl::StrCat("all steps below ", done, " were reported as done, but ", where,
                                   " has applied only those below ", claimed.base()),
                      AbandonedTimeline::Remedy::kClaimAgain);
  } else {
    const std::vector<uint64_t> named(
        lack.steps.begin(), lack.steps.begin() + std::min(lack.steps.size(), kMaxNamedSteps));
    LogError(absl::StrCat(
        where, " has not applied ", lack.steps.size(), lack.steps.size() == 1 ? " step" : " steps",
        " reported as done (", absl::StrJoin(named, ", "),
        lack.steps.size() > named.size() ? ", ..." : "", "); they are leased again"));
    parts_.scheduler->steps().Undo(lack.steps);
    parts_.counted.insert(lack.steps.begin(), lack.steps.end());
  }
  for (const auto& [key, step] : lack.reporters) {
    const auto worker = parts_.membership->workers().find(key);
    if (worker == parts_.membership->workers().end()) continue;
    parts_.membership->Reject(
        *worker->second,
        absl::StrCat("this worker reported step ", step, " as done, but ", where,
                     " has not applied it: one of the two is broken, or runs another build"),
        /*final=*/true);
  }
  wakeup_.Raise();
}

void WorkerReports::OnEvaluationDone(Worker& worker, const proto::EvaluationDone& done) {
  if (parts_.scheduler->evaluation() == nullptr || done.timeline() != parts_.opened->timeline ||
      done.cut_step() != parts_.scheduler->evaluation()->cut_step()) {
    return;
  }
  if (const absl::Status sound = Check().Batch(done, parts_.TestBatches()); !sound.ok())
    return parts_.membership->Reject(worker, std::string(sound.message()), true);
  parts_.scheduler->BatchDone(worker, done);
  if (parts_.scheduler->evaluation()->finished()) return FinishEvaluation();
  OfferWork(worker);
}

void WorkerReports::FinishEvaluation() {
  const std::unique_ptr<Evaluation> done = parts_.scheduler->EndEvaluation();
  // An evaluator that came meanwhile may have brought the same result faster.
  if (!parts_.history->IsEvaluated(done->epoch()))
    parts_.history->SetTestResult(done->epoch(), done->loss(), done->metric_sums(),
                                  done->examples());
  parts_.checkpointer->Release();
  wakeup_.Raise();
}

}  // namespace shoal
