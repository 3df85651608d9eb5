#pragma once

#include <cstdint>
#include <optional>

#include "common/job/job.h"
#include "common/rpc/event_loop.h"
#include "common/step_plan/round_plan.h"
#include "common/step_plan/step_plan.h"

namespace shoal {

// Where the next cut of a job is taken, and when. The end of an epoch that is to be evaluated, and
// of the job, are cut in any case, and no lease passes them before the cut is accepted; the others
// are taken where the steps happen to be. Of one timeline. Plain state machine: no threads, no
// clock of its own.
class CutPlan {
 public:
  // The newest cut that was begun, also before this plan: from it the schedule counts.
  struct Last {
    uint64_t step = 0;
    Time at{};
    bool failed = false;  // it was given up, and is to be tried again
  };
  struct Options {
    uint64_t timeline = 0;
    Job::Checkpoint when;
    // None until steps are handed out; then no cut is taken in any case.
    std::optional<StepPlan> plan;
    // Those of the strategy sync, once they are known: cuts lie between two.
    std::optional<RoundPlan> rounds;
    bool evaluates = false;  // there is a test set
    // No lease passes the end of an epoch before what comes of it is decided: EpochDecided().
    bool awaits_results = false;
    uint64_t base = 0;  // first step of the timeline that is not done
    Last last;
    Time now{};
  };
  explicit CutPlan(const Options& options);

  // First step from which no lease may be given before a cut there is accepted.
  uint64_t mandatory() const;
  // The epoch whose end mandatory() is, where epochs are evaluated.
  uint64_t epoch() const { return next_epoch_; }
  // The epoch at whose end the newest accepted cut at a mandatory() is.
  uint64_t cut_epoch() const { return cut_epoch_; }

  // How the steps stand.
  struct Steps {
    uint64_t first_unleased = 0;
    uint64_t leased = 0;
    double per_second = 0;
  };
  struct Cut {
    uint64_t step = 0;
    bool hold = false;  // for an evaluation
  };
  // The cut that is due now, while none is in progress. `asked`: somebody waits for a checkpoint;
  // `evaluated`: epoch() has its result already.
  std::optional<Cut> Due(Time now, const Steps& steps, bool asked, bool evaluated) const;

  void Began(uint64_t step, Time now);
  // Leases may pass it, unless the epoch's result is awaited.
  void Accepted(uint64_t step, Time now);
  // The result of epoch() is known, and training goes on.
  void EpochDecided() { NextEpoch(); }
  // `highest_step`: where a ps refused, the highest step it has applied, a step of the job.
  void GivenUp(uint64_t step, std::optional<uint64_t> highest_step, const Steps& steps, Time now);

  // A cut here needs a fresh term: the ps know one of this term and step.
  bool NeedsFreshTerm(uint64_t step) const { return step <= last_.step; }
  const Last& last() const { return last_; }
  uint64_t timeline() const { return options_.timeline; }

 private:
  uint64_t epochs() const;
  // The first step from this one on where a cut may be.
  uint64_t CutFrom(uint64_t step) const {
    return options_.rounds.has_value() ? options_.rounds->NextStart(step) : step;
  }
  void NextEpoch();
  // Steps that will be leased until a cut that begins now is accepted.
  uint64_t AheadOf(const Steps& steps) const;

  const Options options_;
  uint64_t next_epoch_ = 0;  // first whose end has not been cut, or is not decided
  uint64_t cut_epoch_ = 0;
  std::optional<uint64_t> late_cut_;  // where that cut goes instead, when a ps refused it
  int late_cuts_ = 0;                 // so many times in a row
  Last last_;
  Time accepting_{};               // how long a cut takes from its begin to being accepted
  Time no_cut_before_{};           // after a failure
  bool mandatory_failed_ = false;  // that was the one at mandatory()
};

// After a failure, the next try comes this much later.
inline constexpr Time kRetryCutAfter = std::chrono::seconds(5);

}  // namespace shoal
