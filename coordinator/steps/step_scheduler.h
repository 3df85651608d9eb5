#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/rpc/scope.h"
#include "common/step_plan/round_plan.h"
#include "coordinator/steps/evaluation.h"
#include "coordinator/steps/membership.h"
#include "coordinator/steps/round_share.h"
#include "coordinator/steps/step_dispatcher.h"
#include "coordinator/steps/step_reports.h"
#include "proto/coordinator.pb.h"

namespace shoal {

// Leases the steps of the open timeline, and the batches of an evaluation, to ready workers. Each
// worker holds enough to be never idle, and no worker gets far ahead of the others. The owner sets
// how far leases may go, by the limit of steps().
//
//   closed ── Open ──▶ open ── Begin ──▶ leasing ── End ──▶ no more leases
//     ▲                  │                  │
//     └─────── Close: the timeline is over ─┘
//
// Workers queue for steps, across timelines too. The first in the queue is served first. A worker
// that gets less than it asked for goes to the end. When steps are scarce, before a cut or at the
// end of the window, workers of equal speed get equally many. In rounds, a worker that would only
// delay the round is passed over and keeps its place. Loop thread only.
class StepScheduler {
 public:
  struct Options {
    EventLoop* loop = nullptr;  // these outlive this
    Membership* membership = nullptr;
    uint64_t window_steps = 0;  // these three: of the job's strategy
    double lease_timeout_seconds = 0;
    double speculate_after = 0;
  };
  explicit StepScheduler(const Options& options) : options_(options) {}

  // --- The timeline ---

  struct Timeline {
    uint64_t timeline = 0;
    uint64_t total_steps = 0;
    uint64_t base = 0;                      // all steps below are done
    std::vector<uint64_t> done_after_base;  // so are these
    std::unique_ptr<LeaseRule> rule;        // of the strategy; may be null
    // Set for sync: its rounds. Until they are known, whole_below is set instead: the steps below
    // it form whole rounds.
    std::optional<RoundPlan> rounds;
    std::optional<uint64_t> whole_below;
  };
  // Opens a timeline. May replace an open one if nothing of that is leased.
  void Open(Timeline timeline);
  // From now on workers get steps of the open timeline.
  void Begin() { begun_ = true; }
  // Drops the timeline with its leases, and the evaluation.
  void Close();
  // The job is at its end: no worker gets work any more, in any timeline.
  void End() { ended_ = true; }
  bool open() const { return steps_ != nullptr; }
  // Whether the open timeline has begun.
  bool begun() const { return begun_; }
  // Requires an open timeline.
  StepDispatcher& steps() { return *steps_; }
  const StepDispatcher& steps() const { return *steps_; }
  StepReports& reports() { return reports_; }
  // Set for sync, once the rounds are known.
  const std::optional<RoundPlan>& rounds() const { return rounds_; }
  // In this and all former timelines.
  uint64_t leased_again() const {
    return leased_again_before_ + (open() ? steps_->leased_again() : 0);
  }
  uint64_t leased_twice() const {
    return leased_twice_before_ + (open() ? steps_->leased_twice() : 0);
  }

  // Leases the batches of `evaluation` too.
  void BeginEvaluation(std::unique_ptr<Evaluation> evaluation) {
    evaluation_ = std::move(evaluation);
  }
  // The evaluation is finished or cancelled: removes and returns it.
  std::unique_ptr<Evaluation> EndEvaluation() { return std::move(evaluation_); }
  // Null if there is no evaluation.
  Evaluation* evaluation() { return evaluation_.get(); }
  const Evaluation* evaluation() const { return evaluation_.get(); }

  // --- Workers ---

  // Leases batches of the evaluation to the worker, and queues it for steps.
  void Offer(Worker& worker);
  // Leases available steps to the workers in the queue.
  void ServeQueue();
  // Returns the first step of each lease since the last call, without second leases.
  std::vector<uint64_t> TakeLeased() { return std::exchange(leased_, {}); }
  // After a takeover: leases to the worker the steps that its hello lists. Skips steps whose lease
  // was revoked, and sends it the Resume again: it may have missed that when its stream broke.
  void Hold(Worker& worker);
  // The worker has reported `steps` steps: updates its speed.
  void OnReport(Worker& worker, int steps);
  // Returns false if the step was done before.
  bool Done(Worker& worker, uint64_t step);
  // The worker has done a batch. Requires an evaluation.
  void BatchDone(Worker& worker, const proto::EvaluationDone& done);
  // The worker hands back all its leases. Returns how many of its steps are open again.
  uint64_t Release(const Worker& worker);
  // The worker's stream is gone: as Release, and removes it from the queue.
  uint64_t Forget(const Worker& worker);
  // The worker has reopened its stream. The leases that its hello lists stay leased to it, and it
  // keeps its speed. The others were lost with the former stream: as Forget, with its result.
  uint64_t Move(const Worker& former, Worker& now);
  // Ends the streams of workers whose leases have expired. Otherwise a stopped worker would be
  // leased the same steps for ever. A worker that is alive comes back at once and reports the steps
  // that it holds. `patient`: spares workers that report that they compute.
  void DropSilent(bool patient);

  // Updates nobody_since(); call it from time to time.
  void UpdateIdleSince();
  // Since when no worker is ready and no step is leased. None while a worker is ready, a step is
  // leased, or the job is at its end.
  const std::optional<Time>& nobody_since() const { return nobody_since_; }

  // --- Revoking leases before a last cut (section 5) ---

  // Revokes the leases that no worker has begun, so that the cut does not wait for them. A cut
  // needs all steps below every begun one. So this first asks the workers to pause and to say how
  // far they have begun. Call it repeatedly; returns true once the leases are revoked.
  bool Revoke();
  // The worker's answer. Returns false if it was not asked, or the answer is no longer needed.
  bool OnHalted(const Worker& worker, const proto::Halted& halted);
  // The workers were asked; nothing may be leased until the leases are revoked.
  bool revoking() const { return revocation_.has_value() && !revocation_->done; }
  // Training continues: the next Revoke asks again.
  void ForgetRevocation() { revocation_.reset(); }

  // Returns the step at which a cut would be now. The cut waits for all leased steps, and for the
  // rest of their round. If no worker is left to repeat open steps, it takes the done ones.
  uint64_t CutTarget() const;
  // Returns the step below which a checkpoint can hold the done steps.
  uint64_t KeepableBelow() const;

  struct Counters {
    uint64_t steps_leased = 0;
    uint64_t steps_repeated = 0;
    uint64_t lease_expiries = 0;
    uint64_t evaluation_batches = 0;
  };
  const Counters& counters() const { return counters_; }

 private:
  struct Revocation {
    Time asked_at{};
    std::set<StepDispatcher::WorkerKey> unanswered;
    std::map<StepDispatcher::WorkerKey, uint64_t> begun_below;
    bool done = false;
  };
  bool MayHave(const Worker& worker) const;
  // The same, and updates sharers_. Otherwise a report would cost a look at every worker.
  bool CountForShare(const Worker& worker);
  // How many of the steps that it should have now the worker got. kWithheld: none, as the open
  // steps are reserved for faster workers.
  enum class Given { kNothing, kSome, kAll, kWithheld };
  Given GiveSteps(Worker& worker);
  // Returns how many steps the worker should hold.
  uint64_t Ahead(const Worker& worker) const;
  // Returns how many of `wanted` steps the worker should get without delaying its round.
  uint64_t WorthGiving(const Worker& worker, uint64_t wanted) const;
  // True if the worker was too slow for rounds, has been idle for long, and no other worker is
  // being tried.
  bool IsToBeTried(const Worker& worker) const;
  Backlog BacklogOf(const Worker& worker) const;
  void SendLease(Worker& worker, const StepRun& run);
  void ServeSteps();
  // Speculation: if a worker takes too long for a step, leases its oldest step a second time, to a
  // worker in the queue. In rounds only after all other steps are leased.
  void LeaseSecond();
  void GiveSecond(const std::set<StepDispatcher::WorkerKey>& slow);
  // Returns the median time for a step, over the workers that have done some; 0 if there are none.
  double MedianStepSeconds() const;
  std::string WhyExpired(const Worker& worker, Time now);
  proto::WorkerOrder Resume() const;

  const Options options_;
  uint64_t timeline_ = 0;
  std::unique_ptr<StepDispatcher> steps_;
  uint64_t span_ = 0;  // max steps that are out at once
  std::optional<RoundPlan> rounds_;
  std::optional<uint64_t> whole_below_;
  StepReports reports_;
  std::unique_ptr<Evaluation> evaluation_;
  bool begun_ = false;
  bool ended_ = false;
  Timer look_again_{options_.loop};                 // to check for slow workers
  std::optional<StepDispatcher::WorkerKey> tried_;  // holds the step that it is tried with
  std::deque<StepDispatcher::WorkerKey> line_;      // connected workers that wait for steps
  std::vector<uint64_t> leased_;                    // see TakeLeased
  std::set<StepDispatcher::WorkerKey> sharers_;     // workers that share the steps of the span
  std::optional<Revocation> revocation_;            // in this timeline
  uint64_t leased_again_before_ = 0;                // in former timelines
  uint64_t leased_twice_before_ = 0;
  std::optional<Time> nobody_since_;
  Counters counters_;
};

}  // namespace shoal
