#include "common/metrics/metric_catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "common/metrics/histogram.h"

namespace shoal {
namespace {

using ::testing::ElementsAre;

TEST(MetricCatalogTest, ANameIsFoundWhenTheCodeIsCompiled) {
  constexpr MetricName kMetric("shoal_ps_apply_seconds");
  static_assert(kMetric.description().kind == MetricKind::kHistogram);
  static_assert(kMetricCatalog[kMetric.index()].name == "shoal_ps_apply_seconds");
}

TEST(MetricCatalogTest, NamesDiffer) {
  std::set<std::string_view> names;
  for (const MetricDescription& metric : kMetricCatalog)
    EXPECT_TRUE(names.insert(metric.name).second) << metric.name;
}

TEST(MetricCatalogTest, EveryEntryIsWhatItsNameSays) {
  for (const MetricDescription& metric : kMetricCatalog) {
    SCOPED_TRACE(std::string(metric.name));
    EXPECT_TRUE(metric.name.starts_with("process_") || metric.name.starts_with("shoal_"));
    EXPECT_EQ(metric.name.ends_with("_total"), metric.kind == MetricKind::kCounter);
    EXPECT_EQ(!metric.bounds.empty(), metric.kind == MetricKind::kHistogram);
    EXPECT_TRUE(std::is_sorted(metric.bounds.begin(), metric.bounds.end()));
    EXPECT_TRUE(metric.help.ends_with("."));
    EXPECT_EQ(metric.help.find('|'), std::string_view::npos) << "would end the column";
  }
}

TEST(HistogramTest, AValueCountsInTheBucketWhoseBoundIsTheFirstNotBelowIt) {
  Histogram histogram("shoal_ps_staleness_updates");  // 0, 1, 2, 4, …, 2048
  for (const double value : {0.0, 1.0, 3.0, 4.0, 4.5, 1000.0}) histogram.Observe(value);
  EXPECT_THAT(histogram.counts(), ElementsAre(1, 1, 0, 2, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0));
  EXPECT_EQ(histogram.sum(), 1012.5);
}

}  // namespace
}  // namespace shoal
