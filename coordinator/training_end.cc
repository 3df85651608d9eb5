// How a TrainingRun ends, or has to pause: a stop, a ps that leaves, the saved model.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/checkpoint/checkpoint_verification.h"
#include "common/checkpoint/model_export.h"
#include "common/daemon/logging.h"
#include "coordinator/training_run.h"

namespace shoal {
namespace {

// Workers and ps that do not answer at the end are gone.
constexpr Time kDismissTimeout = std::chrono::seconds(5);
// An orderly stop without a worker waits this long for one.
constexpr Time kStopPatience = std::chrono::seconds(5);
// How long a stop waits while nobody gets on, nor says that it computes.
constexpr Time kStallPatience = std::chrono::seconds(15);
// A ps that leaves waits this long for the end of an evaluation: a part of its grace period.
constexpr Time kEvaluationPatience = std::chrono::seconds(5);
// A disk that is full at a stop may get room: what is to be written is tried again for this long.
constexpr Time kWritePatience = std::chrono::seconds(15);
// A disk that does not answer at the end is waited for so long, and by the process as long again.
constexpr Time kDiskPatience = std::chrono::seconds(3);
// A ps that may leave goes at once; one that is still there after this time stays.
constexpr Time kLeaveTimeout = std::chrono::seconds(10);

}  // namespace

void TrainingRun::Stop() {
  if (stopping_ || over_) return;
  stopping_ = true;
  stop_began_ = options_.loop->Now();
  if (!opened_.has_value()) {
    EndUnopenedStop(stop_began_);
    if (!over_.has_value()) LogInfo("stopping, once the ps have said what they hold");
    return;
  }
  if (NothingToKeep()) return Over(absl::CancelledError("stopped before training began"));
  LogInfo(absl::StrCat(
      "stopping: no more steps are handed out; a checkpoint follows. A step that a worker says it "
      "computes is waited for up to ",
      options_.job.strategy.lease_timeout_seconds,
      " s ($.strategy.lease_timeout_seconds), anything else for 15 s without headway; a second "
      "signal ends at once"));
  Advance();
}

// A ps that has not said yet what it holds, or holds steps of a former coordinator while others are
// still to be asked, has something to keep: OnTimelineOpened goes on with it.
void TrainingRun::EndUnopenedStop(Time now) {
  if (!stopping_ || opened_.has_value() || over_.has_value()) return;
  bool holds_steps = false;
  for (int ps = 0; ps < fleet_->size() && fleet_->phase() == PsFleet::Phase::kClaiming; ++ps) {
    const PsFleet::Peer& peer = fleet_->peer(ps);
    holds_steps = holds_steps || (peer.link != nullptr && peer.link->connected() &&
                                  (!peer.claimed_now || peer.claimed->timeline() != 0));
  }
  if (holds_steps && now - stop_began_ < kStallPatience) return;
  // What this coordinator has seen done, and what a ps holds, is in no checkpoint.
  steps_lost_ = holds_steps || counters_.timelines_opened > 0;
  if (!steps_lost_) return Over(absl::CancelledError("stopped before training began"));
  Over(absl::CancelledError(absl::StrCat(
      "stopped without a checkpoint of the last steps: ",
      holds_steps ? absl::StrCat("gave up waiting for ", absl::StrJoin(Waiting(), "; "))
                  : "the ps were being restored")));
}

// Nobody can train without it: it takes a checkpoint of all that is leased with it, and its
// successor begins there.
void TrainingRun::OnPsDeparting(int ps) {
  LogWarning(absl::StrCat("ps ", ps, " leaves; a checkpoint is written first"));
  // What it holds is not known yet: OnTimelineOpened comes back to it.
  if (fleet_->phase() == PsFleet::Phase::kClaiming) return;
  if (NothingToKeep()) return Closed("there is nothing to keep");
  Advance();
}

// In a timeline of this coordinator nobody trains before a worker has come.
bool TrainingRun::NothingToKeep() const {
  return !training() && !(opened_.has_value() && opened_->adopted);
}

// A ps that says it leaves, is told that it may, and does not go, must not keep all others waiting.
void TrainingRun::ForgetDeparture(Time now) {
  if (ps_asks_to_leave()) return;
  for (int ps = 0; ps < fleet_->size(); ++ps) {
    const PsFleet::Peer& peer = fleet_->peer(ps);
    const Time told = now - peer.departure_since;
    if (peer.departure != PsFleet::Departure::kAllowed || told < kLeaveTimeout ||
        !peer.link->connected()) {
      continue;
    }
    LogWarning(absl::StrCat("ps ", ps, " may leave since ", WholeSeconds(told),
                            " s and is still there: the training goes on"));
    fleet_->ForgetDeparture(ps);
  }
  if (!closing()) handout_->ForgetTakeBack();
}

// While an evaluation keeps its cut there is no other one, and a ps that goes meanwhile takes all
// steps since with it.
void TrainingRun::EndEvaluationForDeparture(Time now) {
  const std::optional<Time> since = fleet_->DepartureSince(PsFleet::Departure::kAsked);
  if (!since.has_value() || handout_->evaluation() == nullptr || now - *since < kEvaluationPatience)
    return;
  LogWarning(absl::StrCat("the evaluation of epoch ", handout_->evaluation()->epoch() + 1,
                          " is given up: a ps leaves, and cannot wait for its end"));
  handout_->EndEvaluation();
  checkpointer_->Release();
}

void TrainingRun::Closed(const std::string& outcome, bool kept) {
  const auto say = [kept](const std::string& line) { kept ? LogInfo(line) : LogWarning(line); };
  for (const int ps : fleet_->LetLeave()) say(absl::StrCat("ps ", ps, " may leave: ", outcome));
  if (!stopping_) return;
  steps_lost_ = !kept;
  say("stopping: " + outcome);
  Over(absl::CancelledError("stopped: " + outcome));
}

void TrainingRun::NotWritten(const std::string& why) {
  if (!stopping_) return ClosedWithout(why);
  const Time now = options_.loop->Now();
  if (!not_written_since_.has_value()) not_written_since_ = now;
  const Time left = kWritePatience - (now - *not_written_since_);
  if (left <= Time{}) return ClosedWithout(why);
  write_again_at_ = now + kRetryCutAfter;
  LogWarning(absl::StrCat("stopping: no checkpoint of the last steps yet (", why,
                          "). It is tried "
                          "again every ",
                          WholeSeconds(kRetryCutAfter), " s, for ", WholeSeconds(left),
                          " s: make room in ", paths_.checkpoints(), " if that is full. Else ",
                          NotKept()));
}

void TrainingRun::ClosedWithout(const std::string& why) {
  Closed(absl::StrCat("without a checkpoint of the last steps: ", why, "; ", NotKept()),
         /*kept=*/false);
}

std::string TrainingRun::NotKept() const {
  const std::optional<StoredCheckpoint>& newest = checkpointer_->newest();
  const uint64_t done = handout_->steps().done_count();
  const uint64_t kept = newest.has_value() ? std::min(newest->manifest.cut_step, done) : 0;
  if (kept == done) return "no step that is done is lost";
  return absl::StrCat(
      done - kept, done - kept == 1 ? " step" : " steps", " done since ",
      newest.has_value() ? newest->directory : "the beginning, as there is no checkpoint,",
      " will be lost with the ps; a coordinator that is started again before they end goes on with "
      "all of them");
}

bool TrainingRun::NoWorkerLeft() const {
  return no_worker_since_.has_value() && options_.loop->Now() - *no_worker_since_ >= kStopPatience;
}

// Nobody is left to do what is waited for: what is done is kept, where that can be.
void TrainingRun::CloseWithoutWorkers() {
  if (!(stopping_ || ps_asks_to_leave()) || !handout_->open() || over_) return;
  if (handout_->evaluation() != nullptr) {
    handout_->EndEvaluation();
    return checkpointer_->Release();
  }
  // What a worker did whose last report was lost with its stream.
  CountApplied();
  if (CutTarget() > handout_->steps().base()) {
    return ClosedWithout("no worker is left to do them");
  }
  if (!checkpointer_->idle() && checkpointer_->step() > CutTarget())
    checkpointer_->GiveUp("no worker is left to do the steps below it");
}

void TrainingRun::CountApplied() {
  for (int ps = 0; ps < fleet_->size(); ++ps) {
    if (fleet_->peer(ps).claimed->timeline() != opened_->timeline) return;
  }
  const Time now = options_.loop->Now();
  const PsFleet::Applied applied = fleet_->AppliedEverywhere();
  // Beyond what was leased nobody can have applied anything.
  const uint64_t end = handout_->steps().first_unleased();
  for (uint64_t step = handout_->steps().base(); step < std::min(applied.base, end); ++step)
    handout_->steps().Done(StepDispatcher::kNobody, step, now);
  for (const uint64_t step : applied.after_base) {
    if (step < end) handout_->steps().Done(StepDispatcher::kNobody, step, now);
  }
}

void TrainingRun::CloseIfStalled(Time now) {
  if (!stopping_ || !handout_->open() || finishing_ || over_) return;
  // Many workers that share a core finish no step for long, and then all of them at once.
  uint64_t applied_chunks = 0;
  for (int ps = 0; ps < fleet_->size(); ++ps) {
    const std::optional<proto::Claimed>& latest = fleet_->peer(ps).claimed;
    if (latest.has_value()) applied_chunks += latest->applied_chunks();
  }
  const std::array<uint64_t, 5> headway = {applied_chunks, handout_->steps().done_count(),
                                           counters_.evaluation_batches, checkpointer_->committed(),
                                           checkpointer_->headway()};
  const bool writing = checkpointer_->writing() && fleet_->Waiting().empty();
  if (headway_ != headway || writing) {
    headway_ = headway;
    headway_at_ = now;
    return;
  }
  const Time patience = StallPatience(now);
  if (now - headway_at_ < patience) return;
  const std::vector<std::string> waiting = Waiting();
  ClosedWithout(absl::StrCat(
      "gave up waiting for ", waiting.empty() ? "the checkpoint" : absl::StrJoin(waiting, "; "),
      patience > kStallPatience ? "; $.strategy.lease_timeout_seconds of the job says how long a "
                                  "step is waited for"
                                : ""));
}

Time TrainingRun::StallPatience(Time now) const {
  for (const auto& [key, worker] : membership_->workers()) {
    if (worker->Computing(now))
      return std::max(kStallPatience, FromSeconds(options_.job.strategy.lease_timeout_seconds));
  }
  return kStallPatience;
}

void TrainingRun::SaveModel(const StoredCheckpoint& final_checkpoint) {
  if (!final_checkpoint.manifest.finite()) {
    return EndForNan(absl::StrCat("all steps are done, but values in \"",
                                  final_checkpoint.manifest.not_finite,
                                  "\" of the last checkpoint, ", final_checkpoint.directory,
                                  ", are not finite numbers; no model is saved. ", AfterNan()));
  }
  finishing_ = true;
  auto saved = std::make_shared<absl::Status>();
  const std::string directory = paths_.model();
  options_.loop->Offload(
      [files = options_.files, slot = optimizer_->average_slot(), final_checkpoint, directory,
       saved, last = checkpointer_->last()] {
        // Only the best epoch's is another than the last one, which was verified.
        if (last.has_value() && last->directory != final_checkpoint.directory) {
          *saved = VerifyCheckpoint(final_checkpoint, files);
          const bool lost = absl::IsDataLoss(*saved) || absl::IsNotFound(*saved);
          if (lost && last->manifest.finite()) {
            LogWarning(
                absl::StrCat("the model gets the values of the last epoch, and not of the best: ",
                             std::string(saved->message())));
            *saved = ExportModel(*last, directory, slot, files);
            return;
          }
          if (!saved->ok()) return;
        }
        *saved = ExportModel(final_checkpoint, directory, slot, files);
      },
      [this, alive = alive_, saved, directory] {
        if (!*alive || over_) return;
        if (!saved->ok()) return Over(*saved);
        LogInfo("the model is saved in " + directory);
        DismissWorkers();
      });
}

void TrainingRun::DismissWorkers() {
  workers_may_go_ = true;
  proto::WorkerOrder order;
  order.mutable_job_done()->set_failure(failure_);
  membership_->Broadcast(order);
  dismiss_deadline_ = options_.loop->CallAfter(kDismissTimeout, [this] {
    dismiss_deadline_ = 0;
    DismissPs();
  });
  // Workers that have not found this successor yet hear it when they do.
  if (membership_->workers().empty() && !found_finished_) DismissPs();
}

// Those that can't be reached count as stopped.
void TrainingRun::DismissPs() {
  if (over_) return;
  if (dismiss_deadline_ != 0) options_.loop->CancelTimer(dismiss_deadline_);
  fleet_->Dismiss();
  dismiss_deadline_ = options_.loop->CallAfter(kDismissTimeout, [this] {
    dismiss_deadline_ = 0;
    Over(outcome_);
  });
}

void TrainingRun::EndForNan(const std::string& why) {
  if (finishing_) return;
  finishing_ = true;
  failure_ = why;
  outcome_ = absl::DataLossError(why);
  DismissWorkers();
}

void TrainingRun::Over(const absl::Status& status) {
  if (over_.has_value()) return;
  over_ = status;
  requests_->OnOver(status, !steps_lost_);
  if (!status.ok() && status.code() != absl::StatusCode::kCancelled)
    failure_ = std::string(status.message());
  fleet_->Close();
  lease_->Pause();
  over_deadline_ = options_.loop->CallAfter(kDiskPatience, [this] {
    over_deadline_ = 0;
    LogWarning(absl::StrCat("stopping without waiting longer for the disk of ", paths_.directory,
                            ", which has not taken within ", WholeSeconds(kDiskPatience),
                            " s what was being written"));
    options_.on_over(*over_);
  });
  if (!history_->writing()) EndAfterWrites();
}

// Whoever comes next finds all files of this one: the lease is given back after them, and not at
// all where they may still be written.
void TrainingRun::EndAfterWrites() {
  const auto end = [this, alive = alive_] {
    if (!*alive || over_deadline_ == 0) return;
    options_.loop->CancelTimer(std::exchange(over_deadline_, 0));
    options_.on_over(*over_);
  };
  options_.loop->Offload([] {},
                         [this, alive = alive_, end] {
                           if (!*alive || over_deadline_ == 0) return;
                           lease_->Release();
                           options_.loop->OffloadBrief([] {}, end);
                         });
}

}  // namespace shoal
