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

// The checkpoint before a timeline ends that could go on: its coordinator is to stop, or one of its
// ps leaves. Nothing new is begun, what nobody has begun is taken back, and the rest is waited for
// as long as somebody gets on; then all that is done is cut, and whoever leaves may go. Where there
// can be no such checkpoint it is told what is lost.
//
//   open ── Stop, a ps asks ──▶ closing ── its cut is written, or given up ──▶ over (a stop), or
//    ▲                                                                         the ps may go
//    └───────────────── a ps that may go has not ──────────────────────────────────┘
//
// No threads of its own; loop thread only.
class DrainCheckpoint {
 public:
  struct Options {
    EventLoop* loop = nullptr;  // these outlive this
    PsFleet* fleet = nullptr;
    Membership* membership = nullptr;
    StepScheduler* handout = nullptr;
    Checkpointer* checkpointer = nullptr;
    Shutdown* ending = nullptr;
    double lease_timeout_seconds = 0;
    std::string checkpoints;  // their directory, for people
    // The open timeline; null without one.
    std::function<const PsFleet::Opened*()> opened;
    // Whom the run waits for.
    std::function<std::vector<std::string>()> waiting;
    // Begins the cut.
    std::function<void(uint64_t step)> begin_cut;
  };
  explicit DrainCheckpoint(Options options) : options_(std::move(options)) {}

  // An orderly stop of the coordinator: the run is over after it. Plan follows.
  void Stop();
  bool stopping() const { return stop_asked_.has_value(); }
  // No step that is done is lost with a stop.
  bool kept() const { return kept_; }
  // Nobody can train without it: it takes a checkpoint of all that is leased with it, and its
  // successor begins there. Plan follows.
  void OnPsDeparting(int ps);
  // The last checkpoint is wanted, and nothing new is begun.
  bool closing() const { return stopping() || ps_leaves(); }
  // Nobody has done anything in this timeline that is not loaded with the next one.
  bool NothingToKeep() const;

  void OnTimelineOpened();
  void OnTimelineOver(const std::string& why);
  // While closing, a cut in progress that lies above steps which nobody has begun is not waited
  // for.
  void GiveUpCutAhead();
  // While closing and no cut is in progress: begins the cut as soon as it can be, or ends with it.
  void Plan();
  // It could not be written: a stop tries again for a while, and so does a ps that leaves where
  // it is `too_late`: a ps has applied some of a step from the cut on.
  void NotWritten(const std::string& why, bool too_late);
  // Since when it could not.
  const std::optional<Time>& not_written_since() const { return not_written_since_; }
  // From time to time: before what is to be done is planned, and after it.
  void BeforePlan();
  void AfterPlan();

 private:
  // The timeline ends with it.
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
  // The checkpoint is written, there is nothing to write, or it cannot be: then not all is kept.
  void Closed(const std::string& outcome, bool kept = true);
  void ClosedWithout(const std::string& why);
  void ForgetFailure();
  // The steps that are done and that no checkpoint has, for people.
  std::string NotKept() const;

  const Options options_;
  std::optional<Time> stop_asked_;
  bool kept_ = true;
  bool was_open_ = false;                  // some timeline
  std::optional<Time> not_written_since_;  // when the last checkpoint failed first,
  Time write_again_at_{};                  // and when it is tried again
  // What was done when a stop last saw that something is, and when that was.
  std::optional<std::array<uint64_t, 5>> headway_;
  Time headway_at_{};
};

}  // namespace shoal
