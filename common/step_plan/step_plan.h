#pragma once

#include <cstdint>

#include "common/step_plan/index_permutation.h"

namespace shoal {

// Examples [first, first + count) of an epoch's order.
struct StepRange {
  uint64_t epoch = 0;
  uint64_t first = 0;
  uint64_t count = 0;
};

// Which step takes which examples: the pure function of promise 1. Plain arithmetic, thread-safe.
// Steps are numbered through all epochs; the last step of an epoch takes what is left of it.
// An IndexPermutation of the epoch turns the order's positions into examples.
class StepPlan {
 public:
  // Exactly one of `epochs` and `steps` is not 0; examples and batch_size > 0: anything else ends
  // the process. A product that no uint64_t holds becomes the largest one.
  StepPlan(uint64_t examples, uint64_t batch_size, uint64_t epochs, uint64_t steps);

  uint64_t total_steps() const { return total_steps_; }
  uint64_t steps_per_epoch() const { return steps_per_epoch_; }
  // Number of epochs, the last one possibly cut short by `steps`.
  uint64_t epochs() const;
  uint64_t examples() const { return examples_; }
  uint64_t batch_size() const { return batch_size_; }
  uint64_t EpochOf(uint64_t step) const { return step / steps_per_epoch_; }
  // First step after epoch `epoch`; at most total_steps().
  uint64_t EpochEnd(uint64_t epoch) const;
  StepRange Range(uint64_t step) const;

 private:
  uint64_t examples_;
  uint64_t batch_size_;
  uint64_t steps_per_epoch_;
  uint64_t total_steps_;
};

}  // namespace shoal
