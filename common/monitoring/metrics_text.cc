#include "common/monitoring/metrics_text.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <limits>
#include <sstream>
#include <vector>

#include "common/base/check.h"

namespace shoal {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

MetricType TypeOf(MetricKind kind) {
  switch (kind) {
    case MetricKind::kCounter:
      return MetricType::Counter;
    case MetricKind::kGauge:
      return MetricType::Gauge;
    case MetricKind::kHistogram:
      break;
  }
  return MetricType::Histogram;
}

ClientMetric::Histogram HistogramOf(const MetricSamples::Sample& sample) {
  ClientMetric::Histogram histogram;
  histogram.sample_sum = sample.value;
  for (size_t i = 0; i < sample.counts.size(); ++i) {
    histogram.sample_count += sample.counts[i];
    const std::span<const double> bounds = sample.metric.description().bounds;
    histogram.bucket.push_back(
        {histogram.sample_count,
         i < bounds.size() ? bounds[i] : std::numeric_limits<double>::infinity()});
  }
  return histogram;
}

ClientMetric ToClientMetric(const MetricSamples::Sample& sample) {
  const MetricDescription& metric = sample.metric.description();
  ClientMetric out;
  for (size_t i = 0; i < sample.labels.size(); ++i) {
    SHOAL_CHECK(i < metric.labels.size() && !metric.labels[i].empty(), std::string(metric.name));
    out.label.push_back({std::string(metric.labels[i]), sample.labels[i]});
  }
  switch (metric.kind) {
    case MetricKind::kCounter:
      out.counter.value = sample.value;
      break;
    case MetricKind::kGauge:
      out.gauge.value = sample.value;
      break;
    case MetricKind::kHistogram:
      out.histogram = HistogramOf(sample);
      break;
  }
  return out;
}

}  // namespace

std::string MetricsText(const MetricSamples& samples) {
  std::array<std::vector<ClientMetric>, kMetricCount> found;
  for (const MetricSamples::Sample& sample : samples.samples())
    found[sample.metric.index()].push_back(ToClientMetric(sample));
  std::vector<MetricFamily> families;
  for (size_t i = 0; i < kMetricCount; ++i) {
    if (found[i].empty()) continue;
    const MetricDescription& metric = kMetricCatalog[i];
    families.push_back({std::string(metric.name), std::string(metric.help), TypeOf(metric.kind),
                        std::move(found[i])});
  }
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families);
  return out.str();
}

}  // namespace shoal
