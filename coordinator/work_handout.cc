#include "coordinator/work_handout.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/step_plan/round_message.h"

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
// A worker that does not say how far it is stands still; it keeps what it holds.
constexpr Time kHaltPatience = std::chrono::seconds(1);

// How many steps a worker should hold, of which `share` is the most: what each could hold if all
// held equally many of those that may be out.
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

void WorkHandout::Open(Timeline timeline) {
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

void WorkHandout::Close() {
  leased_again_before_ = leased_again();
  leased_twice_before_ = leased_twice();
  steps_.reset();
  reports_.Clear();
  evaluation_.reset();
  take_back_.reset();
  begun_ = false;
}

bool WorkHandout::MayHave(const Worker& worker) const {
  return begun_ && !ended_ && worker.ready && !worker.lost_timeline;
}

void WorkHandout::Offer(Worker& worker) {
  if (!MayHave(worker)) return;
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

void WorkHandout::ServeLine() {
  LeaseSecond();
  while (!line_.empty()) {
    Worker& worker = *options_.membership->workers().at(line_.front());
    const Given given = GiveSteps(worker);
    if (given == Given::kNothing) return;  // nor would those behind it get any
    line_.pop_front();
    worker.in_line = given == Given::kSome;
    if (worker.in_line) line_.push_back(worker.key);
  }
}

WorkHandout::Given WorkHandout::GiveSteps(Worker& worker) {
  if (!MayHave(worker)) return Given::kAll;
  const Time now = options_.loop->Now();
  const uint64_t ahead = LeasesAhead(worker, span_ / options_.membership->workers().size());
  const uint64_t portion = std::max<uint64_t>(ahead / kLeasePortions, 1);
  const uint64_t held = steps_->held(worker.key);
  uint64_t wanted = held + portion <= ahead ? portion : 0;
  const uint64_t least = std::min(ahead, kMinLeasesAhead);
  if (held < least) wanted = std::max(wanted, least - held);
  NoteIdle(worker);
  Given given = Given::kNothing;
  while (wanted > 0) {
    const StepRun run = steps_->Take(worker.key, wanted, now);
    if (run.count == 0) return given;
    given = Given::kSome;
    wanted -= run.count;
    counters_.steps_leased += run.count;
    options_.on_leased(run.first);
    SendLease(worker, run);
  }
  return Given::kAll;
}

// What it did not have to do is not how long a step takes it.
void WorkHandout::NoteIdle(Worker& worker) const {
  if (steps_->held(worker.key) == 0 && worker.steps_done > 0)
    worker.last_report = options_.loop->Now();
}

void WorkHandout::SendLease(Worker& worker, const StepRun& run) {
  proto::WorkerOrder order;
  proto::Lease* lease = order.mutable_lease();
  lease->set_timeline(timeline_);
  lease->set_first(run.first);
  lease->set_count(run.count);
  lease->set_timeout_ms(static_cast<uint64_t>(options_.lease_timeout_seconds * 1000));
  if (rounds_.has_value()) SetRound(rounds_->Of(run.first), lease);
  worker.Send(order);
}

void WorkHandout::LeaseSecond() {
  if (options_.speculate_after == 0 || !open() || taking_back()) return;
  const double median = MedianStepSeconds();
  if (median == 0) return;
  const Time now = options_.loop->Now();
  // Short steps are reported in portions: till then it is not known which of them are done.
  const double slow = std::max(options_.speculate_after * median, kLeaseAheadSeconds);
  const Time begun_before = now - FromSeconds(slow);
  for (const StepDispatcher::WorkerKey key : line_) {
    Worker& worker = *options_.membership->workers().at(key);
    if (!MayHave(worker)) continue;
    NoteIdle(worker);
    const auto step = steps_->TakeSecond(key, begun_before, now);
    if (!step.has_value()) continue;
    ++counters_.steps_leased;
    SendLease(worker, {*step, 1});
  }
}

double WorkHandout::MedianStepSeconds() const {
  std::vector<double> seconds;
  for (const auto& [key, worker] : options_.membership->workers())
    if (worker->step_seconds > 0) seconds.push_back(worker->step_seconds);
  if (seconds.empty()) return 0;
  // The lower one of two: the slower of two workers is not slow by its own measure.
  const auto middle = seconds.begin() + static_cast<int64_t>((seconds.size() - 1) / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

void WorkHandout::Hold(Worker& worker) {
  if (worker.hello.timeline() != timeline_) return;
  uint64_t end = steps_->total_steps();
  if (take_back_.has_value() && take_back_->done) {
    end = steps_->first_unleased();
    worker.Send(GoOn());
  }
  for (const uint64_t step : worker.hello.held_steps()) {
    if (step < end) steps_->Hold(worker.key, step, options_.loop->Now());
  }
}

void WorkHandout::OnReport(Worker& worker, int steps) {
  const Time now = options_.loop->Now();
  const double seconds = ToSeconds(now - worker.last_report);
  worker.last_report = now;
  if (worker.steps_done == 0 || steps == 0) return;
  const double each = seconds / steps;
  worker.step_seconds = worker.step_seconds == 0 ? each : 0.9 * worker.step_seconds + 0.1 * each;
}

bool WorkHandout::Done(Worker& worker, uint64_t step) {
  if (!steps_->Done(worker.key, step, options_.loop->Now())) {
    ++counters_.steps_repeated;
    return false;
  }
  reports_.Add(step, worker.key);
  ++worker.steps_done;
  return true;
}

void WorkHandout::BatchDone(Worker& worker, const proto::EvaluationDone& done) {
  worker.last_report = options_.loop->Now();
  const uint64_t before = evaluation_->batches().done_count();
  evaluation_->Done(worker.key, done.batch(), done.examples(), done.loss_sum(),
                    {done.metric_sums().begin(), done.metric_sums().end()}, worker.last_report);
  counters_.evaluation_batches += evaluation_->batches().done_count() - before;
}

uint64_t WorkHandout::Release(const Worker& worker) {
  if (evaluation_ != nullptr) evaluation_->batches().Release(worker.key);
  return open() ? steps_->Release(worker.key) : 0;
}

uint64_t WorkHandout::Forget(const Worker& worker) {
  std::erase(line_, worker.key);
  if (take_back_.has_value()) take_back_->unanswered.erase(worker.key);
  return Release(worker);
}

std::string WorkHandout::WhyExpired(const Worker& worker, Time now) {
  const double timeout = options_.lease_timeout_seconds;
  if (!worker.Computing(now))
    return absl::StrCat("reported nothing for ", timeout, " s; its steps are leased again");
  ++options_.membership->record(worker).expiries;
  return absl::StrCat("is alive and ", worker.waiting.what(), ", but has finished no step for ",
                      timeout,
                      " s, the job's $.strategy.lease_timeout_seconds: its steps are "
                      "leased again. Raise that field where steps take so long");
}

void WorkHandout::DropSilent(bool patient) {
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

void WorkHandout::NoteWhoIsThere() {
  const bool at_work = open() && steps_->leased_count() > 0;
  if (options_.membership->AnyReady() || at_work || ended_) {
    nobody_since_.reset();
  } else if (!nobody_since_.has_value()) {
    nobody_since_ = options_.loop->Now();
  }
}

uint64_t WorkHandout::CutTarget() const {
  const bool nobody = steps_->leased_count() == 0 && !options_.membership->AnyReady();
  // A round that nobody can complete is as if it had not begun: what is in of it is done again.
  if (rounds_.has_value()) {
    return nobody ? rounds_->StartAt(steps_->base()) : rounds_->NextStart(steps_->first_unleased());
  }
  if (whole_below_.has_value()) return *whole_below_;
  return nobody && steps_->done_after_base().empty() ? steps_->base() : steps_->first_unleased();
}

uint64_t WorkHandout::KeepableBelow() const {
  if (rounds_.has_value()) return rounds_->StartAt(steps_->done_below());
  return whole_below_.value_or(steps_->done_below());
}

bool WorkHandout::TakeBack() {
  const Time now = options_.loop->Now();
  if (!take_back_.has_value()) {
    take_back_ = TakenBack{.asked_at = now};
    proto::WorkerOrder order;
    order.mutable_halt()->set_timeline(timeline_);
    for (const auto& [key, worker] : options_.membership->workers()) {
      if (steps_->held(key) == 0) continue;
      take_back_->unanswered.insert(key);
      worker->Send(order);
    }
  }
  if (take_back_->done) return true;
  if (!take_back_->unanswered.empty() && now - take_back_->asked_at < kHaltPatience) return false;
  take_back_->done = true;
  std::function<uint64_t(uint64_t)> end_of_round;
  if (rounds_.has_value())
    end_of_round = [this](uint64_t step) { return rounds_->NextStart(step); };
  steps_->TakeBack(take_back_->begun_below, end_of_round);
  options_.membership->Broadcast(GoOn());
  return true;
}

proto::WorkerOrder WorkHandout::GoOn() const {
  proto::WorkerOrder order;
  order.mutable_go_on()->set_timeline(timeline_);
  order.mutable_go_on()->set_below(steps_->first_unleased());
  return order;
}

bool WorkHandout::OnHalted(const Worker& worker, const proto::Halted& halted) {
  if (!taking_back() || halted.timeline() != timeline_) return false;
  if (take_back_->unanswered.erase(worker.key) == 0) return false;
  take_back_->begun_below[worker.key] = halted.begun_below();
  return true;
}

}  // namespace shoal
