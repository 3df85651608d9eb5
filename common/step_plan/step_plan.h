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

// Maps steps to examples: the pure function of promise 1. Plain arithmetic, thread-safe. Steps are
// numbered through all epochs; the last step of an epoch has the rest of its examples. An
// IndexPermutation of the epoch maps positions in the order to examples.
class StepPlan {
 public:
  // Requires examples and batch_size > 0, and exactly one of `epochs` and `steps` to be nonzero;
  // otherwise the process ends. A product too large for uint64_t is clamped to the max.
  StepPlan(uint64_t examples, uint64_t batch_size, uint64_t epochs, uint64_t steps);

  uint64_t total_steps() const { return total_steps_; }
  uint64_t steps_per_epoch() const { return steps_per_epoch_; }
  // The number of epochs; `steps` may cut the last one short.
  uint64_t epochs() const;
  uint64_t examples() const { return examples_; }
  uint64_t batch_size() const { return batch_size_; }
  uint64_t EpochOf(uint64_t step) const { return step / steps_per_epoch_; }
  // First step after epoch `epoch`; at most total_steps().
  uint64_t EpochEnd(uint64_t epoch) const;
  // The examples of `step`.
  StepRange Range(uint64_t step) const;

 private:
  uint64_t examples_;
  uint64_t batch_size_;
  uint64_t steps_per_epoch_;
  uint64_t total_steps_;
};

}  // namespace shoal
