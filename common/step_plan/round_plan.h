#pragma once

#include <cstdint>

#include "common/step_plan/round.h"
#include "common/step_plan/step_plan.h"

namespace shoal {

// Maps steps to rounds of the strategy sync (docs/protocol.md, section 13): a fixed number of
// consecutive steps, and the rest at the end of an epoch or of the job. A pure function of the
// plan, independent of the workers present. Plain arithmetic, thread-safe.
class RoundPlan {
 public:
  // Requires `max_steps` > 0, the max number of steps in a round; otherwise the process ends.
  RoundPlan(const StepPlan& plan, uint64_t max_steps);

  // The round of `step`, which must be a step of the job.
  Round Of(uint64_t step) const;
  // The first step of the round of `step`: all steps below it are in whole rounds. For the step
  // after the last, returns that step.
  uint64_t StartAt(uint64_t step) const;
  // The first step, from `step` on, at which a round begins or the job ends.
  uint64_t NextStart(uint64_t step) const;
  bool StartsAt(uint64_t step) const { return StartAt(step) == step; }
  // The number of rounds whose steps are all below `step`.
  uint64_t CompleteRoundsBelow(uint64_t step) const;
  uint64_t max_steps() const { return max_steps_; }

 private:
  StepPlan plan_;
  uint64_t max_steps_;
  uint64_t rounds_per_epoch_;
};

}  // namespace shoal
