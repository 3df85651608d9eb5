#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/cuts/checkpointer.h"
#include "coordinator/run/shutdown.h"
#include "coordinator/steps/membership.h"
#include "coordinator/steps/step_scheduler.h"
#include "coordinator/takeover/ps_fleet.h"

namespace shoal {

// The last checkpoint of a timeline before its coordinator stops or one of its ps leaves. The
// coordinator leases no more steps and revokes leases that no worker has begun. It waits for the
// other leases while there is headway. Then it cuts all done steps, and stops or lets the ps go. If
// no such checkpoint is possible, it logs what is lost.
//
//   open ── Stop, a ps asks ──▶ closing ── its cut is written, or cancelled ─▶ over (a stop), or
//    ▲                                                                         the ps may go
//    └───────────────── the ps that may go stays ──────────────────────────────────┘
//
// No threads of its own; loop thread only.
class DrainCheckpoint {
 public:
  struct Options {
    EventLoop* loop = nullptr;  // these outlive this
    PsFleet* fleet = nullptr;
    Membership* membership = nullptr;
    StepScheduler* scheduler = nullptr;
    Checkpointer* checkpointer = nullptr;
    Shutdown* shutdown = nullptr;
    double lease_timeout_seconds = 0;
    std::string checkpoints;                                 // their directory, for people
    const std::optional<PsFleet::Opened>* opened = nullptr;  // the open timeline
    // Names the processes that the run waits for.
    std::function<std::vector<std::string>()> waiting;
  };
  explicit DrainCheckpoint(Options options) : options_(std::move(options)) {}

  // Stops the coordinator in order: the run is over after the checkpoint. Call Plan after it.
  void Stop();
  bool stopping() const { return stop_asked_.has_value(); }
  // True if a stop loses no done step.
  bool kept() const { return kept_; }
  // A ps leaves. No worker can train without it. The checkpoint holds all steps that are leased
  // now, and the successor of the ps begins there. Call CloseEarly and Plan after it, in a turn.
  void OnPsDeparting(int ps);
  // True while the last checkpoint is due and no new step is begun.
  bool closing() const { return stopping() || ps_leaves(); }
  // True if this timeline has no progress that the next one would not load.
  bool NothingToKeep() const;

  // Call CloseEarly after these, in a turn.
  void OnTimelineOpened();
  void OnTimelineOver(const std::string& why);
  // Ends the closing if no checkpoint can follow: the timeline is over, or there is nothing to
  // keep. Does nothing if none of OnPsDeparting and these two was called since the last call.
  void CloseEarly();
  // While closing: cancels a cut in progress that lies above steps that no worker has begun.
  void CancelCutAhead();
  // While closing, with no cut in progress: returns the step of the cut to begin now, as soon as
  // it is possible. Ends the closing if the checkpoint exists.
  std::optional<uint64_t> Plan();
  // The checkpoint could not be written. A stop retries for 15 s. A ps that leaves does so only if
  // `too_late`: a ps has applied part of a step at or above the cut.
  void NotWritten(const std::string& why, bool too_late);
  // When the checkpoint first could not be written.
  const std::optional<Time>& not_written_since() const { return not_written_since_; }
  // Call these from time to time, before and after planning.
  void BeforePlan();
  void AfterPlan();

 private:
  // The timeline ends when this ps leaves.
  bool ps_leaves() const { return ps_asks_to_leave() || ps_may_leave(); }
  bool ps_asks_to_leave() const {
    return options_.fleet->DepartureSince(PsFleet::Departure::kAsked).has_value();
  }
  bool ps_may_leave() const {
    return options_.fleet->DepartureSince(PsFleet::Departure::kAllowed).has_value();
  }
  void EndUnopenedStop(Time now);
  void ForgetDeparture(Time now);
  void EndEvaluationForDeparture(Time now);
  bool NoWorkerLeft() const;
  void CloseWithoutWorkers();
  void CountApplied();
  void CloseIfStalled(Time now);
  Time StallPatience(Time now) const;
  // Ends the closing: the checkpoint is written or not needed, or, with `kept` false, it cannot be
  // written and steps are lost.
  void Closed(const std::string& outcome, bool kept = true);
  void ClosedWithout(const std::string& why);
  void ForgetFailure();
  // Describes the done steps that no checkpoint holds, for people.
  std::string NotKept() const;

  const Options options_;
  std::optional<Time> stop_asked_;
  bool kept_ = true;
  bool was_open_ = false;  // a timeline was open once
  // Since the last CloseEarly: a stop has lost its timeline for this reason; and a ps leaves or a
  // timeline was opened, so that there may be nothing to keep.
  std::optional<std::string> timeline_over_;
  bool look_for_steps_ = false;
  std::optional<Time> not_written_since_;  // when the last checkpoint first failed
  Time write_again_at_{};                  // when it is retried
  // The progress counters when a stop last saw headway, and the time of that.
  std::optional<std::array<uint64_t, 5>> headway_;
  Time headway_at_{};
};

}  // namespace shoal
