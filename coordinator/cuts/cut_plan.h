#pragma once

#include <cstdint>
#include <optional>

#include "common/job/job.h"
#include "common/rpc/event_loop.h"
#include "common/step_plan/round_plan.h"
#include "common/step_plan/step_plan.h"

namespace shoal {

// Plans where and when the next cut of a job is taken. Cuts at the end of an evaluated epoch, and
// at the end of the job, are mandatory: no lease passes them before the cut is accepted. A cut of
// every_steps is taken at its step unless leases have passed it, all other cuts at the current
// steps. Serves one timeline. Plain state machine: no threads, no clock of its own.
class CutPlan {
 public:
  // The newest cut that was begun, also before this plan. The schedule counts from it.
  struct Last {
    uint64_t step = 0;
    Time at{};
    bool failed = false;  // it was cancelled and must be retried
  };
  struct Options {
    uint64_t timeline = 0;
    Job::Checkpoint when;
    // Empty until steps are leased. Without it no cut is mandatory.
    std::optional<StepPlan> plan;
    // The rounds of the strategy sync, once they are known. Cuts lie between two rounds.
    std::optional<RoundPlan> rounds;
    bool evaluates = false;  // there is a test set
    // No lease passes the end of an epoch before its result is decided (EpochDecided).
    bool awaits_results = false;
    uint64_t base = 0;  // first step of the timeline that is not done
    Last last;
    Time now{};
  };
  explicit CutPlan(const Options& options);

  // The step of the next mandatory cut. No lease passes it before a cut there is accepted.
  uint64_t mandatory() const;
  // The epoch that ends at mandatory(), if epochs are evaluated.
  uint64_t epoch() const { return next_epoch_; }
  // The epoch that ends at the newest accepted mandatory cut.
  uint64_t cut_epoch() const { return cut_epoch_; }

  // The current state of the steps.
  struct Steps {
    uint64_t first_unleased = 0;
    uint64_t leased = 0;
    double per_second = 0;
  };
  struct Cut {
    uint64_t step = 0;
    bool hold = false;  // for an evaluation
  };
  // Returns the cut that is due now. Requires that none is in progress. `asked`: a
  // checkpoint was requested. `evaluated`: epoch() has its result already.
  std::optional<Cut> Due(Time now, const Steps& steps, bool asked, bool evaluated) const;

  void Began(uint64_t step, Time now);
  // All ps have accepted the cut at `step`. Leases may pass it, unless awaits_results is set.
  void Accepted(uint64_t step, Time now);
  // The result of epoch() is known, and training continues.
  void EpochDecided() { NextEpoch(); }
  // The cut at `step` was cancelled. `highest_step`: if a ps rejected it, the highest step that the
  // ps has applied; a step of the job.
  void Cancelled(uint64_t step, std::optional<uint64_t> highest_step, const Steps& steps, Time now);

  // Returns whether a cut here needs a fresh term, as the ps may know a cut of this term and step.
  bool NeedsFreshTerm(uint64_t step) const { return step <= last_.step; }
  const Last& last() const { return last_; }
  uint64_t timeline() const { return options_.timeline; }

 private:
  uint64_t epochs() const;
  // Returns the first step, from `step` on, at which a cut is allowed.
  uint64_t CutFrom(uint64_t step) const {
    return options_.rounds.has_value() ? options_.rounds->NextStart(step) : step;
  }
  void NextEpoch();
  // Estimates how many steps will be leased until a cut that begins now is accepted.
  uint64_t AheadOf(const Steps& steps) const;

  const Options options_;
  uint64_t next_epoch_ = 0;  // first epoch whose end is not cut yet, or not decided
  uint64_t cut_epoch_ = 0;
  std::optional<uint64_t> late_cut_;  // the new step of the mandatory cut, after a ps rejected it
  int late_cuts_ = 0;                 // such rejections in a row
  Last last_;
  Time accepting_{};               // time from a cut's begin until it is accepted
  Time no_cut_before_{};           // after a failure
  bool mandatory_failed_ = false;  // the failed cut was the one at mandatory()
};

// Pause between a failed cut and the retry.
inline constexpr Time kRetryCutAfter = std::chrono::seconds(5);

}  // namespace shoal
