#pragma once

#include <cstdint>

#include "common/step_plan/step_plan.h"

namespace shoal {

// Which batches a step is made of: one, or of the strategy local a block of them in a row, fewer
// where an epoch ends (docs/protocol.md, section 14). A pure function of the job, never of who
// computes it. Plain arithmetic, thread-safe.
class BatchPlan {
 public:
  struct Options {
    uint64_t examples = 0;
    uint64_t batch_size = 0;
    uint64_t batches_per_step = 1;
    uint64_t epochs = 0;  // exactly one of epochs and steps is not 0
    uint64_t steps = 0;
  };
  // What StepPlan takes, and batches_per_step > 0; anything else ends the process.
  explicit BatchPlan(const Options& options);

  // Of steps: what everybody counts. A step takes the examples of all its batches.
  const StepPlan& steps() const { return steps_; }
  // Of batches, numbered through the job; a step has one or more of them.
  const StepPlan& batches() const { return batches_; }

  struct Block {
    uint64_t first = 0;
    uint64_t count = 0;
  };
  // The batches of a step of the job.
  Block BatchesOf(uint64_t step) const;

 private:
  // The first batch of the step, or of the one after the last.
  uint64_t FirstOf(uint64_t step) const;

  uint64_t batches_per_step_;
  StepPlan steps_;
  uint64_t batches_per_epoch_;
  StepPlan batches_;
};

}  // namespace shoal
