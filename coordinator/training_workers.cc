// What a TrainingRun does with its workers: who takes part, who gets which work, and what they
// report.

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/daemon/logging.h"
#include "coordinator/training_run.h"

namespace shoal {
namespace {

// How much work a worker holds ahead, so that its next step is there before it is needed.
constexpr double kLeaseAheadSeconds = 0.2;
constexpr uint64_t kMinLeasesAhead = 2;
constexpr uint64_t kMaxLeasesAhead = 64;
// In so many portions, so that workers take turns and steps are done nearly in their order; with
// short steps, one worker would else be epochs ahead of another.
// Workers report in portions as large.
constexpr uint64_t kLeasePortions = 4;
constexpr uint64_t kEvaluationsAhead = 2;
// Who reported what is remembered for so many steps; a ps is asked every second.
constexpr size_t kMostReporters = 1 << 16;
// Steps that one line names.
constexpr size_t kMostNamedSteps = 8;

// How many steps a worker should hold, of which `share` is the most: what each could hold if all
// held equally many of the window.
uint64_t LeasesAhead(const Worker& worker, uint64_t share) {
  const uint64_t most = std::clamp<uint64_t>(share, 1, kMaxLeasesAhead);
  const uint64_t least = std::min(most, kMinLeasesAhead);
  if (worker.step_seconds <= 0) return least;
  // Compared as numbers that may be too large for an integer.
  return static_cast<uint64_t>(std::clamp<double>(kLeaseAheadSeconds / worker.step_seconds,
                                                  static_cast<double>(least),
                                                  static_cast<double>(most)));
}

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
  // An operator's order to drain may have crossed this.
  Membership::Record& record = membership_->record(worker);
  worker.ready = record.state != Membership::Record::State::kDraining;
  if (worker.ready) record.state = Membership::Record::State::kUp;
  LogInfo(absl::StrCat("worker ", worker.index, " is ready"));
  if (finishing_) {
    if (!workers_may_go_) return;  // it is told when that is sure
    proto::WorkerOrder order;
    order.mutable_job_done()->set_failure(failure_);
    return worker.Send(order);
  }
  if (opened_.has_value()) {
    Announce(worker);
    if (first) {
      BeginTraining();
    } else {
      HoldSteps(worker);
    }
  }
  OfferWork(worker);
  ServeLine();
}

// After a takeover: these are its own already. Not those that were taken back for a stop, which it
// has not heard of where its stream broke meanwhile.
void TrainingRun::HoldSteps(Worker& worker) {
  if (worker.hello.timeline() != opened_->timeline) return;
  uint64_t end = dispatcher_->total_steps();
  if (take_back_.has_value() && take_back_->done) {
    end = dispatcher_->first_unleased();
    worker.Send(GoOn());
  }
  for (const uint64_t step : worker.hello.held_steps()) {
    if (step < end) dispatcher_->Hold(worker.key, step, options_.loop->Now());
  }
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
      if (dispatcher_ != nullptr) dispatcher_->Release(worker.key);
      if (evaluation_ != nullptr) evaluation_->batches().Release(worker.key);
      return Advance();
    }
    case proto::WorkerReport::kDraining: {
      worker.ready = false;
      membership_->record(worker).state = Membership::Record::State::kDraining;
      if (evaluation_ != nullptr) evaluation_->batches().Release(worker.key);
      // It leaves when it has this, and has done all that was leased to it before.
      proto::WorkerOrder order;
      order.mutable_drain()->set_reason("as it says itself");
      worker.Send(order);
      return Advance();
    }
    case proto::WorkerReport::kHalted:
      return OnHalted(worker, report.halted());
    case proto::WorkerReport::kWaiting:
      worker.waiting = report.waiting();
      worker.waiting_at = options_.loop->Now();
      return;
    case proto::WorkerReport::kTimelineLost:
      // Usually a ps was started again, which the next probe shows. If not, the worker was misled
      // by an answer from before the timeline; it has dropped its leases, and the next tick brings
      // it back.
      if (!opened_.has_value() || report.timeline_lost().timeline() != opened_->timeline) return;
      worker.lost_timeline = true;
      if (dispatcher_ != nullptr) dispatcher_->Release(worker.key);
      if (evaluation_ != nullptr) evaluation_->batches().Release(worker.key);
      return Advance();
    default:
      return;
  }
}

void TrainingRun::OnWorkerGone(Worker& worker, const std::string& why) {
  requests_->OnWorkerGone(worker, why);
  std::erase(line_, worker.key);
  if (take_back_.has_value()) take_back_->unanswered.erase(worker.key);
  uint64_t returned = 0;
  if (dispatcher_ != nullptr) returned = dispatcher_->Release(worker.key);
  if (evaluation_ != nullptr) evaluation_->batches().Release(worker.key);
  if (finishing_) {
    if (workers_may_go_ && membership_->workers().empty() && !found_finished_) DismissPs();
    return;
  }
  LogWarning(absl::StrCat(
      "worker ", worker.index, " is gone (", why, ")",
      returned > 0 ? absl::StrCat("; ", returned, " of its steps are leased again") : ""));
  Advance();
}

// What cannot be said of a batch of this job, of a step or of the test set; empty where all can.
template <typename Result>
std::string TrainingRun::WrongResult(const Result& result) const {
  const auto batch_size = static_cast<uint64_t>(options_.job.batch_size);
  if (result.examples() == 0 || result.examples() > batch_size) {
    return absl::StrCat("reported a batch of ", result.examples(),
                        " examples; the job's have 1 to ", batch_size);
  }
  const int sums = progress_.metric_sum_count();
  if (result.metric_sums_size() == sums) return "";
  return absl::StrCat("reported ", result.metric_sums_size(),
                      " sums of metrics; those of the job have ", sums);
}

void TrainingRun::OnStepsDone(Worker& worker, const proto::StepsDone& done) {
  worker.waiting.Clear();
  membership_->record(worker).expiries = 0;
  if (!training() || done.timeline() != opened_->timeline) return;
  const Time now = options_.loop->Now();
  const double seconds = ToSeconds(now - worker.last_report);
  worker.last_report = now;
  if (worker.steps_done > 0 && done.steps_size() > 0) {
    const double each = seconds / done.steps_size();
    worker.step_seconds = worker.step_seconds == 0 ? each : 0.9 * worker.step_seconds + 0.1 * each;
  }
  for (const proto::StepDone& step : done.steps()) {
    if (const std::string wrong = WrongResult(step); !wrong.empty())
      return membership_->Reject(worker, wrong, true);
    if (!dispatcher_->Done(worker.key, step.step(), now)) {
      ++counters_.steps_repeated;
      continue;
    }
    reporters_[step.step()] = worker.key;
    counters_.examples += step.examples();
    ++worker.steps_done;
    ++membership_->record(worker).steps_done;
    ++steps_done_here_;
    progress_.StepDone({.step = step.step(),
                        .epoch = plan_->EpochOf(step.step()),
                        .examples = step.examples(),
                        .loss_sum = step.loss_sum(),
                        .metric_sums = {step.metric_sums().begin(), step.metric_sums().end()}},
                       now);
    NoteLoss(step.step(), step.loss_sum(), worker);
    if (finishing_) return;
  }
  while (reporters_.size() > kMostReporters) reporters_.erase(reporters_.begin());
  // Nobody is looked at but this worker and those in line: a report costs the same however many
  // there are.
  if (!Plan()) return;
  OfferWork(worker);
  ServeLine();
}

// Section 5: what is done is applied on every ps, or somebody says what is not so. The steps of the
// claim answered had been reported before it was made, so they had been applied before, too.
void TrainingRun::CompareWithPs(int ps, const proto::Claimed& claimed) {
  if (finishing_) return;
  if (!training()) return TakeApplied();
  const uint64_t done = std::min(claimed.done_below(), dispatcher_->base());
  uint64_t confirmed = done;
  for (int each = 0; each < fleet_->size(); ++each) {
    const std::optional<proto::Claimed>& latest = fleet_->peer(each).claimed;
    confirmed = std::min(confirmed, latest.has_value() ? latest->base() : 0);
  }
  reporters_.erase(reporters_.begin(), reporters_.lower_bound(confirmed));
  if (claimed.base() >= done) return;
  const std::string where = absl::StrCat("ps ", ps, " at ", options_.ps_addresses[ps]);
  const std::set<uint64_t> applied(claimed.applied_after_base().begin(),
                                   claimed.applied_after_base().end());
  std::map<StepDispatcher::WorkerKey, uint64_t> liars;  // and a step that each reported
  for (auto reporter = reporters_.lower_bound(claimed.base());
       reporter != reporters_.lower_bound(done); ++reporter) {
    if (!applied.contains(reporter->first)) liars.try_emplace(reporter->second, reporter->first);
  }
  if (done - claimed.base() > options_.job.strategy.window_steps) {
    // More than the applied set of a ps tells of: all of them are asked anew.
    fleet_->ClaimAgain(absl::StrCat("all steps below ", done, " were reported as done, but ", where,
                                    " has applied only those below ", claimed.base()));
  } else {
    std::vector<uint64_t> lacking;
    for (uint64_t step = claimed.base(); step < done; ++step) {
      if (!applied.contains(step)) lacking.push_back(step);
    }
    if (lacking.empty()) return;
    const std::vector<uint64_t> named(lacking.begin(),
                                      lacking.begin() + std::min(lacking.size(), kMostNamedSteps));
    LogError(absl::StrCat(where, " has not applied ", lacking.size(),
                          lacking.size() == 1 ? " step" : " steps", " reported as done (",
                          absl::StrJoin(named, ", "), lacking.size() > named.size() ? ", ..." : "",
                          "); they are leased again"));
    dispatcher_->Undo(lacking);
  }
  for (const auto& [key, step] : liars) {
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

// Said once: every later step will have it too.
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

// What may be the cause decides where to go on: another learning rate makes another job, which a
// run directory that has kept something is not for.
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
  if (evaluation_ == nullptr || done.timeline() != opened_->timeline ||
      done.cut_step() != evaluation_->cut_step()) {
    return;
  }
  if (const std::string wrong = WrongResult(done); !wrong.empty())
    return membership_->Reject(worker, wrong, true);
  worker.last_report = options_.loop->Now();
  const uint64_t before = evaluation_->batches().done_count();
  evaluation_->Done(worker.key, done.batch(), done.examples(), done.loss_sum(),
                    {done.metric_sums().begin(), done.metric_sums().end()}, options_.loop->Now());
  counters_.evaluation_batches += evaluation_->batches().done_count() - before;
  if (evaluation_->finished()) return FinishEvaluation();
  OfferWork(worker);
  ServeLine();
}

void TrainingRun::OfferWork(Worker& worker) {
  if (!training() || finishing_ || !worker.ready || worker.lost_timeline) return;
  if (evaluation_ != nullptr) {
    while (evaluation_->batches().held(worker.key) < kEvaluationsAhead) {
      const StepRun batch = evaluation_->batches().Take(worker.key, 1, options_.loop->Now());
      if (batch.count == 0) break;
      proto::WorkerOrder order;
      proto::Evaluate* evaluate = order.mutable_evaluate();
      evaluate->set_timeline(opened_->timeline);
      evaluate->set_cut_step(evaluation_->cut_step());
      evaluate->set_batch(batch.first);
      worker.Send(order);
    }
  }
  if (!std::exchange(worker.in_line, true)) line_.push_back(worker.key);
}

// Who came first is served first, and whoever gets less than it should goes to the end: where there
// are fewer steps than are wanted, before a cut or at the end of the window, workers of equal speed
// get equally many.
void TrainingRun::ServeLine() {
  while (!line_.empty()) {
    Worker& worker = *membership_->workers().at(line_.front());
    const Given given = GiveSteps(worker);
    if (given == Given::kNothing) return;  // nor would those behind it get any
    line_.pop_front();
    worker.in_line = given == Given::kSome;
    if (worker.in_line) line_.push_back(worker.key);
  }
}

TrainingRun::Given TrainingRun::GiveSteps(Worker& worker) {
  if (!training() || finishing_ || !worker.ready || worker.lost_timeline) return Given::kAll;
  const Time now = options_.loop->Now();
  const uint64_t ahead =
      LeasesAhead(worker, options_.job.strategy.window_steps / membership_->workers().size());
  const uint64_t portion = std::max<uint64_t>(ahead / kLeasePortions, 1);
  const uint64_t held = dispatcher_->held(worker.key);
  uint64_t wanted = held + portion <= ahead ? portion : 0;
  const uint64_t least = std::min(ahead, kMinLeasesAhead);
  if (held < least) wanted = std::max(wanted, least - held);
  Given given = Given::kNothing;
  while (wanted > 0) {
    const StepRun run = dispatcher_->Take(worker.key, wanted, now);
    if (run.count == 0) return given;
    given = Given::kSome;
    wanted -= run.count;
    counters_.steps_leased += run.count;
    progress_.EpochBegins(plan_->EpochOf(run.first), now);
    proto::WorkerOrder order;
    proto::Lease* lease = order.mutable_lease();
    lease->set_timeline(opened_->timeline);
    lease->set_first(run.first);
    lease->set_count(run.count);
    lease->set_timeout_ms(
        static_cast<uint64_t>(options_.job.strategy.lease_timeout_seconds * 1000));
    worker.Send(order);
  }
  return Given::kAll;
}

std::string TrainingRun::WhyExpired(const Worker& worker, Time now) {
  const double timeout = options_.job.strategy.lease_timeout_seconds;
  if (!worker.Computing(now))
    return absl::StrCat("reported nothing for ", timeout, " s; its steps are leased again");
  ++membership_->record(worker).expiries;
  return absl::StrCat("is alive and ", worker.waiting.what(), ", but has finished no step for ",
                      timeout,
                      " s, the job's $.strategy.lease_timeout_seconds: its steps are "
                      "leased again. Raise that field where steps take so long");
}

// A worker that has stopped would be leased the same steps for ever. One that lives comes back at
// once and says what it holds.
void TrainingRun::DropSilentWorkers(Time now) {
  std::set<StepDispatcher::WorkerKey> silent;
  const auto expire = [this, &silent, now](StepDispatcher& leases) {
    // A stop has a patience of its own; nobody else is to begin those steps then.
    for (const auto& [key, worker] : membership_->workers())
      if (stopping_ && worker->Computing(now)) leases.Extend(key, now);
    for (const StepDispatcher::WorkerKey worker : leases.Expire(now)) silent.insert(worker);
  };
  if (dispatcher_ != nullptr) expire(*dispatcher_);
  if (evaluation_ != nullptr) expire(evaluation_->batches());
  for (const StepDispatcher::WorkerKey key : silent) {
    auto worker = membership_->workers().find(key);
    if (worker == membership_->workers().end()) continue;
    ++counters_.lease_expiries;
    membership_->Reject(*worker->second, WhyExpired(*worker->second, now), /*final=*/false);
  }
}

}  // namespace shoal
