#include "coordinator/cuts/drain_checkpoint.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/log/logging.h"
#include "coordinator/cuts/cut_plan.h"

namespace shoal {
namespace {

// Without workers, an orderly stop waits this long for one.
constexpr Time kStopPatience = std::chrono::seconds(5);
// A stop waits this long without headway, while no worker reports that it computes.
constexpr Time kStallPatience = std::chrono::seconds(15);
// A ps that leaves waits this long for the end of an evaluation: a part of its grace period.
constexpr Time kEvaluationPatience = std::chrono::seconds(5);
// A stop retries the checkpoint for this long: a full disk may get room.
constexpr Time kWritePatience = std::chrono::seconds(15);
// A ps that may leave goes at once. If it is still there after this time, it counts as staying.
constexpr Time kLeaveTimeout = std::chrono::seconds(10);

}  // namespace

void DrainCheckpoint::Stop() {
  if (stopping() || options_.shutdown->over()) return;
  const Time now = options_.loop->Now();
  stop_asked_ = now;
  if (!options_.opened->has_value()) {
    EndUnopenedStop(now);
    if (!options_.shutdown->over()) LogInfo("stopping, once the ps have reported their steps");
    return;
  }
  if (NothingToKeep())
    return options_.shutdown->Over(absl::CancelledError("stopped before training began"));
  LogInfo(absl::StrCat(
      "stopping: the coordinator leases no more steps, and writes a checkpoint. It waits up to ",
      options_.lease_timeout_seconds,
      " s ($.strategy.lease_timeout_seconds) for a step that a worker computes, and 15 s for "
      "anything else without progress; a second signal ends it at once"));
}

void DrainCheckpoint::OnTimelineOpened() {
  was_open_ = true;
  // A ps that leaves may have been loaded once more, or its claim has just been answered.
  look_for_steps_ = true;
}

void DrainCheckpoint::OnTimelineOver(const std::string& why) {
  if (stopping() && !timeline_over_.has_value()) timeline_over_ = why;
}

void DrainCheckpoint::CloseEarly() {
  const bool look_for_steps = std::exchange(look_for_steps_, false);
  if (const auto why = std::exchange(timeline_over_, std::nullopt)) {
    kept_ = false;
    return options_.shutdown->Over(
        absl::CancelledError("stopped while the ps were being restored: " + *why));
  }
  // While claiming, or while an abandoned timeline waits for its remedy, nobody knows yet what the
  // ps hold: OnTimelineOpened asks again.
  const PsFleet::Phase phase = options_.fleet->phase();
  const bool abandoned = phase == PsFleet::Phase::kLeading && !options_.opened->has_value();
  if (!look_for_steps || abandoned || phase == PsFleet::Phase::kClaiming) return;
  if (closing() && NothingToKeep()) Closed("there is nothing to keep");
}

std::optional<uint64_t> DrainCheckpoint::Plan() {
  if (!stopping() && !ps_asks_to_leave()) return std::nullopt;  // the ps is on its way out
  if (options_.loop->Now() < write_again_at_) return std::nullopt;
  StepScheduler& scheduler = *options_.scheduler;
  if (scheduler.begun() && !scheduler.Revoke()) return std::nullopt;
  const uint64_t next = scheduler.CutTarget();
  // A worker whose stream has just broken may come back with steps that it holds.
  const bool away = next < scheduler.steps().first_unleased() && !options_.membership->AllLeft();
  if (away && !NoWorkerLeft()) return std::nullopt;
  const PsFleet::Opened& opened = **options_.opened;
  const std::optional<StoredCheckpoint>& last = options_.checkpointer->last();
  const std::string written = "the checkpoint is written: ";
  if (last.has_value() && last->manifest.cut_step == next &&
      last->manifest.timeline == opened.timeline) {
    Closed(written + last->directory);
    return std::nullopt;
  }
  if (next == opened.base && !opened.adopted) {
    Closed(opened.checkpoint.empty() ? "there is nothing to keep" : written + opened.checkpoint);
    return std::nullopt;
  }
  // Workers of the former coordinator may come back with steps too.
  if (!scheduler.begun() && !NoWorkerLeft()) return std::nullopt;
  if (const uint64_t base = scheduler.steps().base(); next < base) {
    LogInfo(absl::StrCat("no worker is left to complete the round of steps ", next, " to ",
                         base - 1,
                         ": the checkpoint holds the steps before it; the workers repeat these"));
  }
  return next;
}

void DrainCheckpoint::BeforePlan() {
  const Time now = options_.loop->Now();
  if (!stopping() && !ps_asks_to_leave()) ForgetFailure();
  ForgetDeparture(now);
  EndUnopenedStop(now);
  EndEvaluationForDeparture(now);
}

void DrainCheckpoint::AfterPlan() {
  if (NoWorkerLeft()) CloseWithoutWorkers();
  CloseIfStalled(options_.loop->Now());
}

// Ends a stop if no timeline is open and there is nothing to wait for. The stop waits for a ps that
// has not answered its claim, or that holds a timeline of a former coordinator while others have
// not answered. OnTimelineOpened then continues the stop.
void DrainCheckpoint::EndUnopenedStop(Time now) {
  if (!stopping() || options_.opened->has_value() || options_.shutdown->over()) return;
  bool holds_steps = false;
  for (int ps = 0;
       ps < options_.fleet->size() && options_.fleet->phase() == PsFleet::Phase::kClaiming; ++ps) {
    const PsFleet::Peer& peer = options_.fleet->peer(ps);
    holds_steps = holds_steps || (peer.link != nullptr && peer.link->connected() &&
                                  (!peer.claimed_now || peer.claimed->timeline() != 0));
  }
  if (holds_steps && now - *stop_asked_ < kStallPatience) return;
  // No checkpoint holds the steps that this coordinator saw done, or that a ps holds.
  kept_ = !holds_steps && !was_open_;
  if (kept_) return options_.shutdown->Over(absl::CancelledError("stopped before training began"));
  options_.shutdown->Over(absl::CancelledError(absl::StrCat(
      "stopped without a checkpoint of the last steps: ",
      holds_steps ? absl::StrCat("gave up waiting for ", absl::StrJoin(options_.waiting(), "; "))
                  : "the ps were being restored")));
}

void DrainCheckpoint::OnPsDeparting(int ps) {
  LogWarning(absl::StrCat("ps ", ps, " leaves; the coordinator writes a checkpoint first"));
  look_for_steps_ = true;
}

// In a timeline that this coordinator opened, training begins with the first worker.
bool DrainCheckpoint::NothingToKeep() const {
  const std::optional<PsFleet::Opened>& opened = *options_.opened;
  return !options_.scheduler->begun() && !(opened.has_value() && opened->adopted);
}

// A ps that may leave but does not go must not keep all others waiting.
void DrainCheckpoint::ForgetDeparture(Time now) {
  if (ps_asks_to_leave()) return;
  for (int ps = 0; ps < options_.fleet->size(); ++ps) {
    const PsFleet::Peer& peer = options_.fleet->peer(ps);
    const Time told = now - peer.departure_since;
    if (peer.departure != PsFleet::Departure::kAllowed || told < kLeaveTimeout ||
        !peer.link->connected()) {
      continue;
    }
    LogWarning(absl::StrCat("ps ", ps, " is still there, ", WholeSeconds(told),
                            " s after it was allowed to leave: the training continues"));
    options_.fleet->ForgetDeparture(ps);
  }
  if (!closing()) options_.scheduler->ForgetRevocation();
}

// An evaluation holds its cut, and no other cut can begin meanwhile. A ps that leaves then would
// lose all steps since.
void DrainCheckpoint::EndEvaluationForDeparture(Time now) {
  const std::optional<Time> since = options_.fleet->DepartureSince(PsFleet::Departure::kAsked);
  if (!since.has_value() || options_.scheduler->evaluation() == nullptr ||
      now - *since < kEvaluationPatience)
    return;
  LogWarning(absl::StrCat("cancelling the evaluation of epoch ",
                          options_.scheduler->evaluation()->epoch() + 1,
                          ": a ps leaves, and cannot wait for its end"));
  options_.scheduler->EndEvaluation();
  options_.checkpointer->Release();
}

// Such a cut was begun earlier, for example the one at the job's end.
void DrainCheckpoint::CancelCutAhead() {
  if (!stopping() && !ps_asks_to_leave()) return;
  if (options_.checkpointer->idle() || !options_.shutdown->working()) return;
  StepScheduler& scheduler = *options_.scheduler;
  if (!scheduler.open() || !scheduler.begun() || !scheduler.Revoke()) return;
  if (options_.checkpointer->step() > scheduler.CutTarget())
    options_.checkpointer->Replace("some steps below it have not begun, and no more begin");
}

void DrainCheckpoint::Closed(const std::string& outcome, bool kept) {
  const auto say = [kept](const std::string& line) { kept ? LogInfo(line) : LogWarning(line); };
  ForgetFailure();
  for (const int ps : options_.fleet->ReleaseDeparting())
    say(absl::StrCat("ps ", ps, " may leave: ", outcome));
  if (!stopping()) return;
  kept_ = kept;
  say("stopping: " + outcome);
  options_.shutdown->Over(absl::CancelledError("stopped: " + outcome));
}

void DrainCheckpoint::NotWritten(const std::string& why, bool too_late) {
  // A ps that leaves has no time to wait for a full disk. But a step that is applied in part, for
  // example after the death of its worker, is soon completed by another worker.
  if (!stopping() && !too_late) return ClosedWithout(why);
  const Time now = options_.loop->Now();
  if (!not_written_since_.has_value()) not_written_since_ = now;
  const Time left = kWritePatience - (now - *not_written_since_);
  if (left <= Time{}) return ClosedWithout(why);
  write_again_at_ = now + kRetryCutAfter;
  const std::string helps =
      too_late ? "a worker that comes back computes the missing steps"
               : absl::StrCat("make room in ", options_.checkpoints, " if that is full");
  LogWarning(absl::StrCat(stopping() ? "stopping" : "a ps leaves",
                          ": no checkpoint of the last steps yet (", why, "). Retrying every ",
                          WholeSeconds(kRetryCutAfter), " s, for ", WholeSeconds(left),
                          " s: ", helps, ". Else ", NotKept()));
}

void DrainCheckpoint::ClosedWithout(const std::string& why) {
  Closed(absl::StrCat("without a checkpoint of the last steps: ", why, "; ", NotKept()),
         /*kept=*/false);
}

// The next ps that leaves gets its full time again.
void DrainCheckpoint::ForgetFailure() {
  not_written_since_.reset();
  write_again_at_ = {};
}

std::string DrainCheckpoint::NotKept() const {
  const std::optional<StoredCheckpoint>& newest = options_.checkpointer->newest();
  const uint64_t done = options_.scheduler->steps().done_count();
  const uint64_t kept = newest.has_value() ? std::min(newest->manifest.cut_step, done) : 0;
  if (kept == done) return "no done step is lost";
  return absl::StrCat(
      done - kept, done - kept == 1 ? " step" : " steps", " done since ",
      newest.has_value() ? newest->directory : "the beginning, as there is no checkpoint,",
      " will be lost with the ps; a coordinator restarted before they end continues with all of "
      "them");
}

bool DrainCheckpoint::NoWorkerLeft() const {
  const std::optional<Time>& since = options_.scheduler->nobody_since();
  return since.has_value() && options_.loop->Now() - *since >= kStopPatience;
}

// No worker is left to do the missing steps: keeps the done steps if possible.
void DrainCheckpoint::CloseWithoutWorkers() {
  if (!(stopping() || ps_asks_to_leave()) || !options_.scheduler->open() ||
      options_.shutdown->over()) {
    return;
  }
  if (options_.scheduler->evaluation() != nullptr) {
    options_.scheduler->EndEvaluation();
    return options_.checkpointer->Release();
  }
  // Counts steps whose last report was lost with its worker's stream.
  CountApplied();
  if (options_.scheduler->CutTarget() > options_.scheduler->steps().base()) {
    return ClosedWithout("no worker is left to do them");
  }
  if (!options_.checkpointer->idle() &&
      options_.checkpointer->step() > options_.scheduler->CutTarget())
    options_.checkpointer->Cancel("no worker is left to do the steps below it");
}

void DrainCheckpoint::CountApplied() {
  for (int ps = 0; ps < options_.fleet->size(); ++ps) {
    if (options_.fleet->peer(ps).claimed->timeline() != (*options_.opened)->timeline) return;
  }
  const Time now = options_.loop->Now();
  const PsFleet::Applied applied = options_.fleet->AppliedEverywhere();
  // No worker can have applied a step that was never leased.
  const uint64_t end = options_.scheduler->steps().first_unleased();
  for (uint64_t step = options_.scheduler->steps().base(); step < std::min(applied.base, end);
       ++step)
    options_.scheduler->steps().Done(StepDispatcher::kNobody, step, now);
  for (const uint64_t step : applied.after_base) {
    if (step < end) options_.scheduler->steps().Done(StepDispatcher::kNobody, step, now);
  }
}

void DrainCheckpoint::CloseIfStalled(Time now) {
  if (!stopping() || !options_.scheduler->open() || !options_.shutdown->working()) return;
  // Applied chunks count as headway too: many workers that share a core finish no step for long,
  // and then all at once.
  uint64_t applied_chunks = 0;
  for (int ps = 0; ps < options_.fleet->size(); ++ps) {
    const std::optional<proto::Claimed>& latest = options_.fleet->peer(ps).claimed;
    if (latest.has_value()) applied_chunks += latest->applied_chunks();
  }
  const std::array<uint64_t, 5> headway = {applied_chunks, options_.scheduler->steps().done_count(),
                                           options_.scheduler->counters().evaluation_batches,
                                           options_.checkpointer->committed(),
                                           options_.checkpointer->headway()};
  const bool writing = options_.checkpointer->writing() && options_.fleet->Waiting().empty();
  if (headway_ != headway || writing) {
    headway_ = headway;
    headway_at_ = now;
    return;
  }
  const Time patience = StallPatience(now);
  if (now - headway_at_ < patience) return;
  const std::vector<std::string> waiting = options_.waiting();
  ClosedWithout(absl::StrCat(
      "gave up waiting for ", waiting.empty() ? "the checkpoint" : absl::StrJoin(waiting, "; "),
      patience > kStallPatience
          ? "; the job's $.strategy.lease_timeout_seconds limits the wait for a step"
          : ""));
}

Time DrainCheckpoint::StallPatience(Time now) const {
  for (const auto& [key, worker] : options_.membership->workers()) {
    if (worker->Computing(now))
      return std::max(kStallPatience, FromSeconds(options_.lease_timeout_seconds));
  }
  return kStallPatience;
}

}  // namespace shoal
