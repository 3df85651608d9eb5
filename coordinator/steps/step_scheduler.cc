#include "coordinator/steps/step_scheduler.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/step_plan/round_message.h"

namespace shoal {
namespace {

// A worker holds this much work ahead, so that its next step is there before it needs it.
constexpr double kLeaseAheadSeconds = 0.2;
constexpr uint64_t kMinLeasesAhead = 2;
constexpr uint64_t kMaxLeasesAhead = 64;
// The work is leased in this many portions, so that workers take turns and steps are done nearly in
// order. Otherwise, with short steps, one worker would be epochs ahead of another. Workers report
// in portions of the same size.
constexpr uint64_t kLeasePortions = 4;
constexpr uint64_t kEvaluationsAhead = 2;
// A worker that was too slow for rounds gets one step again after it has been idle for this many of
// its steps. It may be fast by now; otherwise the try costs at most a fiftieth of the time. One
// worker is tried at a time.
constexpr double kIdleStepsBeforeATry = 50;
// Caps a step's time at this multiple of the mean: longer outliers, such as a stopped process, do
// not predict the next step better. A lower cap would make the mean of a worker that is sometimes
// throttled too small.
constexpr double kMaxTimesTheMean = 4;
// While a worker waits, the others are checked this many times before their step counts as slow.
constexpr double kLooks = 4;
constexpr Time kLookNoSooner = std::chrono::milliseconds(5);
// A worker that does not answer a Halt within this time counts as stopped and keeps its leases.
constexpr Time kHaltPatience = std::chrono::seconds(1);

// Returns how many steps a worker should hold, at most `share`: the max per worker if all hold
// equally many of the steps that may be out.
uint64_t LeasesAhead(const Worker& worker, uint64_t share) {
  const uint64_t max = std::clamp<uint64_t>(share, 1, kMaxLeasesAhead);
  const uint64_t min = std::min(max, kMinLeasesAhead);
  if (worker.step_seconds <= 0) return min;
  // Compares doubles, as the quotient may be too large for an integer.
  return static_cast<uint64_t>(std::clamp<double>(kLeaseAheadSeconds / worker.step_seconds,
                                                  static_cast<double>(min),
                                                  static_cast<double>(max)));
}

}  // namespace

void StepScheduler::Open(Timeline timeline) {
  timeline_ = timeline.timeline;
  span_ = options_.window_steps;
  if (timeline.rule != nullptr) span_ = std::min(span_, timeline.rule->Span());
  rounds_ = timeline.rounds;
  whole_below_ = timeline.whole_below;
  steps_ = std::make_unique<StepDispatcher>(
      StepDispatcher::Options{.total_steps = timeline.total_steps,
                              .window_steps = options_.window_steps,
                              .lease_timeout = FromSeconds(options_.lease_timeout_seconds),
                              .rule = std::move(timeline.rule)},
      timeline.base, timeline.done_after_base);
}

void StepScheduler::Close() {
  leased_again_before_ = leased_again();
  leased_twice_before_ = leased_twice();
  steps_.reset();
  reports_.Clear();
  sharers_.clear();
  evaluation_.reset();
  revocation_.reset();
  tried_.reset();
  begun_ = false;
}

bool StepScheduler::MayHave(const Worker& worker) const {
  return begun_ && !ended_ && worker.ready && !worker.lost_timeline;
}

bool StepScheduler::CountForShare(const Worker& worker) {
  const bool may_have = MayHave(worker);
  if (may_have) {
    sharers_.insert(worker.key);
  } else {
    sharers_.erase(worker.key);
  }
  return may_have;
}

void StepScheduler::Offer(Worker& worker) {
  if (!CountForShare(worker)) return;
  if (evaluation_ != nullptr) {
    while (evaluation_->batches().held(worker.key) < kEvaluationsAhead) {
      const StepRun batch = evaluation_->batches().Take(worker.key, 1, options_.loop->Now());
      if (batch.count == 0) break;
      proto::WorkerOrder order;
      proto::Evaluate* evaluate = order.mutable_evaluate();
      evaluate->set_timeline(timeline_);
      evaluate->set_cut_step(evaluation_->cut_step());
      evaluate->set_batch(batch.first);
      worker.Send(order);
    }
  }
  if (!std::exchange(worker.in_line, true)) line_.push_back(worker.key);
}

void StepScheduler::ServeQueue() {
  if (!rounds_.has_value()) LeaseSecond();
  ServeSteps();
  if (rounds_.has_value()) LeaseSecond();
}

void StepScheduler::ServeSteps() {
  size_t passed_over = 0;  // at the front
  while (passed_over < line_.size()) {
    Worker& worker = *options_.membership->workers().at(line_[passed_over]);
    const Given given = GiveSteps(worker);
    if (given == Given::kNothing) return;  // the workers behind it would get none either
    if (given == Given::kWithheld) {
      ++passed_over;
      continue;
    }
    line_.erase(line_.begin() + static_cast<int64_t>(passed_over));
    worker.in_line = given == Given::kSome;
    if (worker.in_line) line_.push_back(worker.key);
  }
}

StepScheduler::Given StepScheduler::GiveSteps(Worker& worker) {
  if (!CountForShare(worker)) return Given::kAll;
  const Time now = options_.loop->Now();
  const uint64_t ahead = Ahead(worker);
  const uint64_t portion = std::max<uint64_t>(ahead / kLeasePortions, 1);
  const uint64_t has = steps_->WorkloadOf(worker.key).steps;
  uint64_t wanted = has + portion <= ahead ? portion : 0;
  const uint64_t least = std::min(ahead, kMinLeasesAhead);
  if (has < least) wanted = std::max(wanted, least - has);
  bool tried = IsToBeTried(worker);
  Given given = Given::kNothing;
  while (wanted > 0) {
    const uint64_t worth = tried ? 1 : WorthGiving(worker, wanted);
    if (worth == 0) return given == Given::kSome ? given : Given::kWithheld;
    const StepRun run = steps_->Take(worker.key, worth, now);
    if (run.count == 0) return given;
    // Idle time does not count as step time.
    if (has == 0 && given == Given::kNothing && worker.steps_done > 0) worker.last_report = now;
    given = Given::kSome;
    if (std::exchange(tried, false)) tried_ = worker.key;
    wanted -= run.count;
    counters_.steps_leased += run.count;
    leased_.push_back(run.first);
    SendLease(worker, run);
  }
  return Given::kAll;
}

uint64_t StepScheduler::Ahead(const Worker& worker) const {
  return LeasesAhead(worker, span_ / std::max<uint64_t>(sharers_.size(), 1));
}

uint64_t StepScheduler::WorthGiving(const Worker& worker, uint64_t wanted) const {
  if (!rounds_.has_value()) return wanted;
  const uint64_t left = steps_->UnleasedBelow(rounds_->NextStart(steps_->base() + 1));
  if (left == 0) return wanted;  // steps of the next round, once they may be leased
  std::vector<Backlog> others;
  for (const auto& [key, other] : options_.membership->workers())
    if (key != worker.key && MayHave(*other)) others.push_back(BacklogOf(*other));
  return ShareOfRound(BacklogOf(worker), others, wanted, left);
}

bool StepScheduler::IsToBeTried(const Worker& worker) const {
  if (!rounds_.has_value() || tried_.has_value() || worker.step_seconds == 0) return false;
  return steps_->WorkloadOf(worker.key).steps == 0 &&
         ToSeconds(options_.loop->Now() - worker.last_report) >
             kIdleStepsBeforeATry * worker.step_seconds;
}

Backlog StepScheduler::BacklogOf(const Worker& worker) const {
  const StepDispatcher::Workload load = steps_->WorkloadOf(worker.key);
  if (load.steps == 0) return {worker.step_seconds, 0};
  // `first`: the time until the next report. The longer that is overdue, the longer it is expected
  // to take.
  const uint64_t portion = std::max<uint64_t>(load.steps / kLeasePortions, 1);
  const double elapsed = ToSeconds(options_.loop->Now() - load.begun);
  const double first = std::abs(static_cast<double>(portion) * worker.step_seconds - elapsed);
  return {worker.step_seconds,
          first + static_cast<double>(load.steps - portion) * worker.step_seconds};
}

void StepScheduler::SendLease(Worker& worker, const StepRun& run) {
  proto::WorkerOrder order;
  proto::Lease* lease = order.mutable_lease();
  lease->set_timeline(timeline_);
  lease->set_first(run.first);
  lease->set_count(run.count);
  lease->set_timeout_ms(static_cast<uint64_t>(options_.lease_timeout_seconds * 1000));
  if (rounds_.has_value()) SetRound(rounds_->Of(run.first), lease);
  worker.Send(order);
}

void StepScheduler::LeaseSecond() {
  if (options_.speculate_after == 0 || !open() || revoking()) return;
  const double median = MedianStepSeconds();
  if (median == 0) return;
  const Time now = options_.loop->Now();
  const double too_long = options_.speculate_after * median;
  std::set<StepDispatcher::WorkerKey> slow;
  for (const auto& [key, worker] : options_.membership->workers()) {
    if (steps_->held(key) == 0) continue;
    const StepDispatcher::Workload load = steps_->WorkloadOf(key);
    // Workers report steps in portions. Until then the coordinator does not know which are done.
    const double late = load.steps > kLeasePortions ? kLeaseAheadSeconds / kLeasePortions : 0;
    if (ToSeconds(now - load.begun) > too_long + late) slow.insert(key);
  }
  if (!slow.empty()) GiveSecond(slow);
  if (line_.empty() || steps_->leased_count() == 0) return;
  look_again_.Set(std::max(FromSeconds(too_long / kLooks), kLookNoSooner),
                  [this] { LeaseSecond(); });
}

void StepScheduler::GiveSecond(const std::set<StepDispatcher::WorkerKey>& slow) {
  const Time now = options_.loop->Now();
  std::vector<Worker*> fastest_first;
  for (const StepDispatcher::WorkerKey key : line_)
    fastest_first.push_back(options_.membership->workers().at(key).get());
  std::ranges::stable_sort(fastest_first, {}, [](const Worker* each) {
    return each->step_seconds > 0 ? each->step_seconds : std::numeric_limits<double>::infinity();
  });
  for (Worker* const worker : fastest_first) {
    const uint64_t has = steps_->WorkloadOf(worker->key).steps;
    if (!MayHave(*worker) || has >= (rounds_.has_value() ? 1 : Ahead(*worker))) continue;
    const auto step = steps_->TakeSecond(worker->key, slow, now);
    if (!step.has_value()) continue;
    if (has == 0) worker->last_report = now;
    ++counters_.steps_leased;
    SendLease(*worker, {*step, 1});
  }
}

double StepScheduler::MedianStepSeconds() const {
  std::vector<double> seconds;
  for (const auto& [key, worker] : options_.membership->workers())
    if (worker->step_seconds > 0) seconds.push_back(worker->step_seconds);
  if (seconds.empty()) return 0;
  // The lower median: otherwise the slower of two workers would be measured against itself.
  const auto middle = seconds.begin() + static_cast<int64_t>((seconds.size() - 1) / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

void StepScheduler::Hold(Worker& worker) {
  if (worker.hello.timeline() != timeline_) return;
  uint64_t end = steps_->total_steps();
  if (revocation_.has_value() && revocation_->done) {
    end = steps_->first_unleased();
    worker.Send(Resume());
  }
  for (const uint64_t step : worker.hello.held_steps()) {
    if (step < end) steps_->Hold(worker.key, step, options_.loop->Now());
  }
}

void StepScheduler::OnReport(Worker& worker, int steps) {
  const Time now = options_.loop->Now();
  const double seconds = ToSeconds(now - worker.last_report);
  worker.last_report = now;
  if (worker.steps_done == 0 || steps == 0) return;
  const double each = seconds / steps;
  double& mean = worker.step_seconds;
  if (tried_ == worker.key) {
    tried_.reset();
    mean = std::min(mean, each);
  }
  mean = mean == 0 ? each : 0.9 * mean + 0.1 * std::min(each, kMaxTimesTheMean * mean);
}

bool StepScheduler::Done(Worker& worker, uint64_t step) {
  if (!steps_->Done(worker.key, step, options_.loop->Now())) {
    ++counters_.steps_repeated;
    return false;
  }
  reports_.Add(step, worker.key);
  ++worker.steps_done;
  return true;
}

void StepScheduler::BatchDone(Worker& worker, const proto::EvaluationDone& done) {
  worker.last_report = options_.loop->Now();
  const uint64_t before = evaluation_->batches().done_count();
  evaluation_->Done(worker.key, done.batch(), done.examples(), done.loss_sum(),
                    {done.metric_sums().begin(), done.metric_sums().end()}, worker.last_report);
  counters_.evaluation_batches += evaluation_->batches().done_count() - before;
}

uint64_t StepScheduler::Release(const Worker& worker) {
  sharers_.erase(worker.key);  // until it is offered steps again
  if (evaluation_ != nullptr) evaluation_->batches().Release(worker.key);
  return open() ? steps_->Release(worker.key) : 0;
}

uint64_t StepScheduler::Forget(const Worker& worker) {
  std::erase(line_, worker.key);
  if (tried_ == worker.key) tried_.reset();
  if (revocation_.has_value()) revocation_->unanswered.erase(worker.key);
  return Release(worker);
}

uint64_t StepScheduler::Move(const Worker& former, Worker& now) {
  now.steps_done = former.steps_done;
  now.step_seconds = former.step_seconds;
  now.waiting = former.waiting;
  now.waiting_at = former.waiting_at;
  if (open() && now.hello.timeline() == timeline_) {
    steps_->Move(former.key, now.key,
                 {now.hello.held_steps().begin(), now.hello.held_steps().end()});
  }
  return Forget(former);
}

std::string StepScheduler::WhyExpired(const Worker& worker, Time now) {
  const double timeout = options_.lease_timeout_seconds;
  if (!worker.Computing(now))
    return absl::StrCat("this worker reported nothing for ", timeout,
                        " s; its steps are leased again");
  ++options_.membership->record(worker).expiries;
  return absl::StrCat("this worker is alive and ", worker.waiting.what(),
                      ", but has finished no step for ", timeout,
                      " s, the job's $.strategy.lease_timeout_seconds; its steps are "
                      "leased again. Raise that field if steps take longer");
}

void StepScheduler::DropSilent(bool patient) {
  const Time now = options_.loop->Now();
  const auto& workers = options_.membership->workers();
  std::set<StepDispatcher::WorkerKey> silent;
  const auto expire = [&](StepDispatcher& leases) {
    for (const auto& [key, worker] : workers)
      if (patient && worker->Computing(now)) leases.Extend(key, now);
    for (const StepDispatcher::WorkerKey worker : leases.Expire(now)) silent.insert(worker);
  };
  if (open()) expire(*steps_);
  if (evaluation_ != nullptr) expire(evaluation_->batches());
  for (const StepDispatcher::WorkerKey key : silent) {
    const auto worker = workers.find(key);
    if (worker == workers.end()) continue;
    ++counters_.lease_expiries;
    options_.membership->Reject(*worker->second, WhyExpired(*worker->second, now),
                                /*final=*/false);
  }
}

void StepScheduler::UpdateIdleSince() {
  const bool at_work = open() && steps_->leased_count() > 0;
  if (options_.membership->AnyReady() || at_work || ended_) {
    nobody_since_.reset();
  } else if (!nobody_since_.has_value()) {
    nobody_since_ = options_.loop->Now();
  }
}

uint64_t StepScheduler::CutTarget() const {
  const bool nobody = steps_->leased_count() == 0 && !options_.membership->AnyReady();
  // A round that no worker can complete counts as not begun: its done steps are repeated later.
  if (rounds_.has_value()) {
    return nobody ? rounds_->StartAt(steps_->base()) : rounds_->NextStart(steps_->first_unleased());
  }
  if (whole_below_.has_value()) return *whole_below_;
  return nobody && steps_->done_after_base().empty() ? steps_->base() : steps_->first_unleased();
}

uint64_t StepScheduler::KeepableBelow() const {
  if (rounds_.has_value()) return rounds_->StartAt(steps_->done_below());
  return whole_below_.value_or(steps_->done_below());
}

bool StepScheduler::Revoke() {
  const Time now = options_.loop->Now();
  if (!revocation_.has_value()) {
    revocation_ = Revocation{.asked_at = now};
    proto::WorkerOrder order;
    order.mutable_halt()->set_timeline(timeline_);
    for (const auto& [key, worker] : options_.membership->workers()) {
      if (steps_->held(key) == 0) continue;
      revocation_->unanswered.insert(key);
      worker->Send(order);
    }
  }
  if (revocation_->done) return true;
  if (!revocation_->unanswered.empty() && now - revocation_->asked_at < kHaltPatience) return false;
  revocation_->done = true;
  std::function<uint64_t(uint64_t)> end_of_round;
  if (rounds_.has_value())
    end_of_round = [this](uint64_t step) { return rounds_->NextStart(step); };
  steps_->Revoke(revocation_->begun_below, end_of_round);
  options_.membership->Broadcast(Resume());
  return true;
}

proto::WorkerOrder StepScheduler::Resume() const {
  proto::WorkerOrder order;
  order.mutable_resume()->set_timeline(timeline_);
  order.mutable_resume()->set_below(steps_->first_unleased());
  return order;
}

bool StepScheduler::OnHalted(const Worker& worker, const proto::Halted& halted) {
  if (!revoking() || halted.timeline() != timeline_) return false;
  if (revocation_->unanswered.erase(worker.key) == 0) return false;
  revocation_->begun_below[worker.key] = halted.begun_below();
  return true;
}

}  // namespace shoal
