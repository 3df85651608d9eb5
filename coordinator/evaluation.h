#pragma once

#include <cstdint>
#include <vector>

#include "coordinator/step_dispatcher.h"

namespace shoal {

// One pass over the test set on the values of one cut: its batches are leased to workers like
// steps, and each counts once. Plain state; not thread-safe.
class Evaluation {
 public:
  // Of epoch `epoch`, on the cut at `cut_step`.
  Evaluation(uint64_t epoch, uint64_t cut_step, uint64_t batches, int metric_sum_count,
             Time lease_timeout)
      : epoch_(epoch),
        cut_step_(cut_step),
        batches_({.total_steps = batches, .window_steps = batches, .lease_timeout = lease_timeout},
                 0, {}),
        metric_sums_(metric_sum_count, 0.0) {}

  uint64_t epoch() const { return epoch_; }
  uint64_t cut_step() const { return cut_step_; }
  StepDispatcher& batches() { return batches_; }
  const StepDispatcher& batches() const { return batches_; }

  // Counts the result of a batch unless it was counted before.
  void Done(StepDispatcher::WorkerKey worker, uint64_t batch, uint64_t examples, double loss_sum,
            const std::vector<double>& metric_sums, Time now) {
    if (metric_sums.size() != metric_sums_.size() || !batches_.Done(worker, batch, now)) return;
    examples_ += examples;
    loss_sum_ += loss_sum;
    for (size_t i = 0; i < metric_sums.size(); ++i) metric_sums_[i] += metric_sums[i];
  }

  bool finished() const { return batches_.finished(); }
  double loss() const { return loss_sum_ / static_cast<double>(examples_); }
  // What the metrics' figures follow from, and the examples that they are of.
  const std::vector<double>& metric_sums() const { return metric_sums_; }
  uint64_t examples() const { return examples_; }

 private:
  const uint64_t epoch_;
  const uint64_t cut_step_;
  StepDispatcher batches_;
  uint64_t examples_ = 0;
  double loss_sum_ = 0;
  std::vector<double> metric_sums_;
};

}  // namespace shoal
