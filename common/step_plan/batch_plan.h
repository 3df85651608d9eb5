#pragma once

#include <cstdint>

#include "common/step_plan/step_plan.h"

namespace shoal {

// Maps steps to batches. A step has one batch or, with the strategy local, a block of consecutive
// batches; fewer at the end of an epoch (docs/protocol.md, section 14). A pure function of the job,
// independent of the worker that computes it. Plain arithmetic, thread-safe.
class BatchPlan {
 public:
  struct Options {
    uint64_t examples = 0;
    uint64_t batch_size = 0;
    uint64_t batches_per_step = 1;
    uint64_t epochs = 0;  // exactly one of epochs and steps is not 0
    uint64_t steps = 0;
  };
  // Requires the same as StepPlan, and batches_per_step > 0; otherwise the process ends.
  explicit BatchPlan(const Options& options);

  // The plan of steps, the unit that all parts count. A step has the examples of all its batches.
  const StepPlan& steps() const { return steps_; }
  // The plan of batches, numbered through the job; a step has one or more of them.
  const StepPlan& batches() const { return batches_; }

  struct Block {
    uint64_t first = 0;
    uint64_t count = 0;
  };
  // The batches of a step of the job.
  Block BatchesOf(uint64_t step) const;

 private:
  // The first batch of the step; also valid for one step past the last.
  uint64_t FirstOf(uint64_t step) const;

  uint64_t batches_per_step_;
  StepPlan steps_;
  uint64_t batches_per_epoch_;
  StepPlan batches_;
};

}  // namespace shoal
