#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "common/metrics/histogram.h"
#include "common/metrics/metric_catalog.h"

namespace shoal {

// The samples of one scrape. Each owner of stats adds its own, on its thread. Not thread-safe.
class MetricSamples {
 public:
  struct Sample {
    MetricName metric;
    std::vector<std::string> labels;  // values, in the catalog's order
    double value = 0;                 // for a histogram: the sum of the counted values
    std::vector<uint64_t> counts;     // for a histogram, as Histogram::counts
  };

  // `labels` must be as many as in the catalog.
  void Add(MetricName metric, double value, std::vector<std::string> labels = {}) {
    samples_.push_back({metric, std::move(labels), value, {}});
  }
  // Adds a histogram's sum and counts.
  void Add(const Histogram& histogram, std::vector<std::string> labels = {}) {
    samples_.push_back(
        {histogram.metric(), std::move(labels), histogram.sum(), histogram.counts()});
  }

  const std::vector<Sample>& samples() const { return samples_; }

 private:
  std::vector<Sample> samples_;
};

}  // namespace shoal
