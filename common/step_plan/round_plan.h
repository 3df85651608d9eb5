#pragma once

#include <cstdint>

#include "common/step_plan/round.h"
#include "common/step_plan/step_plan.h"

namespace shoal {

// Which step belongs to which round of the strategy sync (docs/protocol.md, section 13): so many
// steps in a row, and what is left where an epoch or the job ends. A pure function of the plan,
// never of who is there. Plain arithmetic, thread-safe.
class RoundPlan {
 public:
  // `most_steps` > 0 are those of a round; anything else ends the process.
  RoundPlan(const StepPlan& plan, uint64_t most_steps);

  // Of the step; a step of the job.
  Round Of(uint64_t step) const;
  // First step of the round that the step is in: all below it are in whole rounds. Of the step
  // after the last one, that step.
  uint64_t StartAt(uint64_t step) const;
  // The first step from this one on with which a round begins, or the job ends.
  uint64_t NextStart(uint64_t step) const;
  bool StartsAt(uint64_t step) const { return StartAt(step) == step; }
  // Rounds of which all steps are below this one.
  uint64_t WholeBelow(uint64_t step) const;
  uint64_t most_steps() const { return most_steps_; }

 private:
  StepPlan plan_;
  uint64_t most_steps_;
  uint64_t rounds_per_epoch_;
};

}  // namespace shoal
