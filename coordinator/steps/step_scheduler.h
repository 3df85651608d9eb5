#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
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

// Who gets which work when: leases the steps of the open timeline, and the batches of an
// evaluation, to the workers that are ready, so that each holds enough to be never without and none
// is far ahead of the others. How far steps may go at all its owner says, by their limit.
//
//   closed ── Open ──▶ open ── Begin ──▶ handing out ── End ──▶ never again
//     ▲                  │                    │
//     └──────── Close: the timeline is over ──┘
//
// Workers stand in line for steps, over timelines too: who came first is served first, and whoever
// gets less than it should goes to the end. Where there are fewer steps than are wanted, before a
// cut or at the end of the window, workers of equal speed get equally many. In rounds whoever would
// only hold them up is passed over, and keeps its place. Loop thread only.
class StepScheduler {
 public:
  struct Options {
    EventLoop* loop = nullptr;  // these outlive this
    Membership* membership = nullptr;
    uint64_t window_steps = 0;  // of the job's strategy,
    double lease_timeout_seconds = 0;
    double speculate_after = 0;
    // Steps were leased, of which this is the first.
    std::function<void(uint64_t step)> on_leased;
  };
  explicit StepScheduler(Options options) : options_(std::move(options)) {}

  // --- The timeline ---

  struct Timeline {
    uint64_t timeline = 0;
    uint64_t total_steps = 0;
    uint64_t base = 0;                      // all steps below are done,
    std::vector<uint64_t> done_after_base;  // and these
    std::unique_ptr<LeaseRule> rule;        // of the strategy
    // Of sync: its rounds; and until these are known, a step below which all are in whole rounds.
    std::optional<RoundPlan> rounds;
    std::optional<uint64_t> whole_below;
  };
  // Also in place of the open one, nobody having anything of it.
  void Open(Timeline timeline);
  void Begin() { begun_ = true; }
  void Close();
  // The job is at its end: nobody gets anything any more, in whichever timeline.
  void End() { ended_ = true; }
  bool open() const { return steps_ != nullptr; }
  // Of an open timeline.
  bool begun() const { return begun_; }
  // Of an open timeline, as those below.
  StepDispatcher& steps() { return *steps_; }
  const StepDispatcher& steps() const { return *steps_; }
  StepReports& reports() { return reports_; }
  // Of sync, where they are known.
  const std::optional<RoundPlan>& rounds() const { return rounds_; }
  // In this and all former timelines.
  uint64_t leased_again() const {
    return leased_again_before_ + (open() ? steps_->leased_again() : 0);
  }
  uint64_t leased_twice() const {
    return leased_twice_before_ + (open() ? steps_->leased_twice() : 0);
  }

  // Its batches are handed out, too.
  void BeginEvaluation(std::unique_ptr<Evaluation> evaluation) {
    evaluation_ = std::move(evaluation);
  }
  // It is finished or given up; returns it.
  std::unique_ptr<Evaluation> EndEvaluation() { return std::move(evaluation_); }
  // Null: there is none.
  Evaluation* evaluation() { return evaluation_.get(); }
  const Evaluation* evaluation() const { return evaluation_.get(); }

  // --- Workers ---

  // Gives a worker batches, and puts it in line for steps.
  void Offer(Worker& worker);
  // Leases to those in line, as far as there are steps.
  void ServeLine();
  // After a takeover: what it says that it holds is its own already. Not what was taken back, which
  // it has not heard of where its stream broke meanwhile.
  void Hold(Worker& worker);
  // It has reported so many steps: how fast it is.
  void OnReport(Worker& worker, int steps);
  // False when the step was done before.
  bool Done(Worker& worker, uint64_t step);
  // A batch of the evaluation, which is there.
  void BatchDone(Worker& worker, const proto::EvaluationDone& done);
  // It hands everything back; returns how many steps.
  uint64_t Release(const Worker& worker);
  // The same, as its stream is gone.
  uint64_t Forget(const Worker& worker);
  // A worker that has stopped would be leased the same steps for ever: the streams of those whose
  // leases have expired are ended. One that lives comes back at once and says what it holds.
  // `patient`: not of those that say that they compute.
  void DropSilent(bool patient);

  // To be called from time to time: since when nobody is ready, nor any step leased. None: somebody
  // is, or need not be any more.
  void UpdateIdleSince();
  const std::optional<Time>& nobody_since() const { return nobody_since_; }

  // --- The end of what is begun (section 5) ---

  // What is below a step that is begun has to be done too, or there is no cut; so nobody begins one
  // until it is known how far all of them are: takes back what no worker has begun, so that no step
  // is waited for without need. Asks them first; true once that is done.
  bool TakeBack();
  // Its answer; false when nobody waits for it.
  bool OnHalted(const Worker& worker, const proto::Halted& halted);
  // They have been asked, and nothing may be leased before it is done.
  bool taking_back() const { return take_back_.has_value() && !take_back_->done; }
  // What is begun goes on: the next TakeBack asks anew.
  void ForgetTakeBack() { take_back_.reset(); }

  // Where a cut would be now. It waits for all steps that were leased, and for the rest of their
  // round; where nobody is left who might do those that came back, it takes what is done.
  uint64_t CutTarget() const;
  // What a checkpoint can hold of the steps that are done is below this one.
  uint64_t KeepableBelow() const;

  struct Counters {
    uint64_t steps_leased = 0;
    uint64_t steps_repeated = 0;
    uint64_t lease_expiries = 0;
    uint64_t evaluation_batches = 0;
  };
  const Counters& counters() const { return counters_; }

 private:
  struct TakenBack {
    Time asked_at{};
    std::set<StepDispatcher::WorkerKey> unanswered;
    std::map<StepDispatcher::WorkerKey, uint64_t> begun_below;
    bool done = false;
  };
  bool MayHave(const Worker& worker) const;
  // Of the steps that a worker should have now; withheld: there are some, for faster ones.
  enum class Given { kNothing, kSome, kAll, kWithheld };
  Given GiveSteps(Worker& worker);
  uint64_t Ahead(const Worker& worker) const;
  // Of so many steps, those that its round is not over sooner without it.
  uint64_t WorthGiving(const Worker& worker, uint64_t wanted) const;
  // It was too slow for a round long ago, and nobody else is being tried.
  bool IsToBeTried(const Worker& worker) const;
  Backlog BacklogOf(const Worker& worker) const;
  void SendLease(Worker& worker, const StepRun& run);
  void ServeSteps();
  // Speculation: leases the oldest step a second time, to somebody in line, where its worker has
  // been at one for too long. In rounds for want of others.
  void LeaseSecond();
  void GiveSecond(const std::set<StepDispatcher::WorkerKey>& slow);
  // How long a step takes a worker, in the median of those that have done some; 0: none has.
  double MedianStepSeconds() const;
  std::string WhyExpired(const Worker& worker, Time now);
  proto::WorkerOrder Resume() const;

  const Options options_;
  uint64_t timeline_ = 0;
  std::unique_ptr<StepDispatcher> steps_;
  uint64_t span_ = 0;  // of the steps that are out at once
  std::optional<RoundPlan> rounds_;
  std::optional<uint64_t> whole_below_;
  StepReports reports_;
  std::unique_ptr<Evaluation> evaluation_;
  bool begun_ = false;
  bool ended_ = false;
  Timer look_again_{options_.loop};                 // for what has become too slow
  std::optional<StepDispatcher::WorkerKey> tried_;  // has the step that it is tried with
  std::deque<StepDispatcher::WorkerKey> line_;      // connected workers that wait for steps
  std::optional<TakenBack> take_back_;              // in this timeline
  uint64_t leased_again_before_ = 0;                // in former timelines
  uint64_t leased_twice_before_ = 0;
  std::optional<Time> nobody_since_;
  Counters counters_;
};

}  // namespace shoal
