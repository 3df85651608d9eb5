#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/metrics/metric_samples.h"

namespace shoal {

// Returns the value of a metric that `source` collects, or the number of values in a histogram.
// Returns nullopt if there is no such sample.
template <typename Source>
std::optional<double> SampleValue(const Source& source, MetricName metric,
                                  const std::vector<std::string>& labels = {}) {
  MetricSamples samples;
  source.Collect(&samples);
  for (const MetricSamples::Sample& sample : samples.samples()) {
    if (sample.metric.index() != metric.index() || sample.labels != labels) continue;
    if (sample.counts.empty()) return sample.value;
    double count = 0;
    for (const uint64_t each : sample.counts) count += static_cast<double>(each);
    return count;
  }
  return std::nullopt;
}

}  // namespace shoal
