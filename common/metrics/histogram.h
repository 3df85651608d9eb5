#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/metrics/metric_catalog.h"

namespace shoal {

// Counts values in the buckets of its metric. For the hot path: no lock, no allocation. Use it from
// one thread.
class Histogram {
 public:
  explicit Histogram(MetricName metric)
      : metric_(metric), counts_(metric.description().bounds.size() + 1) {}

  // Counts `value` in the first bucket whose bound is not below it.
  void Observe(double value) {
    const std::span<const double> bounds = metric_.description().bounds;
    size_t bucket = 0;
    while (bucket < bounds.size() && value > bounds[bucket]) ++bucket;
    ++counts_[bucket];
    sum_ += value;
  }

  MetricName metric() const { return metric_; }
  // The count of each bucket alone (not cumulative); the last is for values above all bounds.
  const std::vector<uint64_t>& counts() const { return counts_; }
  double sum() const { return sum_; }

 private:
  MetricName metric_;
  std::vector<uint64_t> counts_;
  double sum_ = 0;
};

}  // namespace shoal
