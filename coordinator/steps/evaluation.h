#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "coordinator/steps/step_dispatcher.h"

namespace shoal {

// One pass over the test set on the values of one cut: its batches are leased to workers like
// steps, and each counts once. They are added up in their order, whoever computes them and when: to
// the last bit the same values have the same result. Plain state; not thread-safe.
class Evaluation {
 public:
  // Of epoch `epoch`, on the cut at `cut_step`.
  Evaluation(uint64_t epoch, uint64_t cut_step, uint64_t batches, int metric_sum_count,
             Time lease_timeout)
      : epoch_(epoch),
        cut_step_(cut_step),
        batches_({.total_steps = batches,
                  .window_steps = std::min(batches, MostAhead(metric_sum_count)),
                  .lease_timeout = lease_timeout},
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
    ahead_[batch] = {examples, loss_sum, metric_sums};
    for (auto next = ahead_.begin(); next != ahead_.end() && next->first == added_; ++added_) {
      Add(next->second);
      next = ahead_.erase(next);
    }
  }

  bool finished() const { return batches_.finished(); }
  double loss() const { return loss_sum_ / static_cast<double>(examples_); }
  // What the metrics' figures follow from, and the examples that they are of.
  const std::vector<double>& metric_sums() const { return metric_sums_; }
  uint64_t examples() const { return examples_; }

 private:
  // Batches whose sums may be kept until those before them are there: 16 MiB of them, and some in
  // any case.
  static uint64_t MostAhead(int metric_sum_count) {
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
  std::map<uint64_t, Result> ahead_;  // done, and not added yet
  uint64_t added_ = 0;                // all batches below are
  uint64_t examples_ = 0;
  double loss_sum_ = 0;
  std::vector<double> metric_sums_;
};

}  // namespace shoal
