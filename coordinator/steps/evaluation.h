#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "coordinator/steps/step_dispatcher.h"

namespace shoal {

// One pass over the test set on the values of one cut. Its batches are leased to workers like
// steps, and each counts once. Results are added in batch order, not in the order of arrival. This
// makes the result of the same values the same to the last bit. Plain state; not thread-safe.
class Evaluation {
 public:
  // Evaluates epoch `epoch` on the cut at `cut_step`.
  Evaluation(uint64_t epoch, uint64_t cut_step, uint64_t batches, int metric_sum_count,
             Time lease_timeout)
      : epoch_(epoch),
        cut_step_(cut_step),
        batches_({.total_steps = batches,
                  .window_steps = std::min(batches, MaxAhead(metric_sum_count)),
                  .lease_timeout = lease_timeout},
                 0, {}),
        metric_sums_(metric_sum_count, 0.0) {}

  uint64_t epoch() const { return epoch_; }
  uint64_t cut_step() const { return cut_step_; }
  StepDispatcher& batches() { return batches_; }
  const StepDispatcher& batches() const { return batches_; }

  // Counts the result of a batch. Ignores a batch that was counted before, and a wrong number of
  // sums.
  void Done(StepDispatcher::WorkerKey worker, uint64_t batch, uint64_t examples, double loss_sum,
            const std::vector<double>& metric_sums, Time now) {
    if (metric_sums.size() != metric_sums_.size() || !batches_.Done(worker, batch, now)) return;
    ahead_[batch] = {examples, loss_sum, metric_sums};
    for (auto next = ahead_.begin(); next != ahead_.end() && next->first == added_; ++added_) {
      Add(next->second);
      next = ahead_.erase(next);
    }
  }

  bool finished() const { return batches_.finished(); }
  double loss() const { return loss_sum_ / static_cast<double>(examples_); }
  // The sums that the metrics are computed from, and the number of examples in them.
  const std::vector<double>& metric_sums() const { return metric_sums_; }
  uint64_t examples() const { return examples_; }

 private:
  // Max batches whose sums wait for an earlier batch: 16 MiB of sums, within 8 to 4096 batches.
  static uint64_t MaxAhead(int metric_sum_count) {
    return std::clamp<uint64_t>((uint64_t{16} << 20) / (sizeof(double) * (metric_sum_count + 8)), 8,
                                4096);
  }
  struct Result {
    uint64_t examples = 0;
    double loss_sum = 0;
    std::vector<double> metric_sums;
  };
  void Add(const Result& batch) {
    examples_ += batch.examples;
    loss_sum_ += batch.loss_sum;
    for (size_t i = 0; i < metric_sums_.size(); ++i) metric_sums_[i] += batch.metric_sums[i];
  }

  const uint64_t epoch_;
  const uint64_t cut_step_;
  StepDispatcher batches_;
  std::map<uint64_t, Result> ahead_;  // done but not added yet
  uint64_t added_ = 0;                // all batches below are added
  uint64_t examples_ = 0;
  double loss_sum_ = 0;
  std::vector<double> metric_sums_;
};

}  // namespace shoal
