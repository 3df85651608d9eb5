#pragma once

#include <string>

#include "common/metrics/metric_samples.h"

namespace shoal {

inline constexpr char kMetricsTextType[] = "text/plain; version=0.0.4; charset=utf-8";

// Formats the samples in Prometheus's text format, in the catalog's order. Any thread.
std::string MetricsText(const MetricSamples& samples);

}  // namespace shoal
