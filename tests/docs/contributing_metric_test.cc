// docs/contributing/adding-a-kind.md, "A metric": what the page shows is built into this program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "common/training_metric/metric_table.h"

namespace shoal {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

TEST(ContributingTest, TheMetricOfThePageIsReadDocumentedAndComputed) {
  EXPECT_THAT(MetricTable().Names(), Contains("Within"));
  EXPECT_THAT(MetricTable().Names(), Contains("AUC"));
  EXPECT_THAT(MetricTable().Docs(true),
              Contains(StartsWith("| `Within` | `within` | `tolerance` (0.1; ")));
  EXPECT_THAT(std::string(MakeMetrics({R"({"class_name": "Within", "config": {"tolerance": -1}})"})
                              .status()
                              .message()),
              HasSubstr("$.metrics[0].config.tolerance: is -1; must be"));

  const auto metrics =
      MakeMetrics({"within"}, {R"({"class_name": "Within", "config": {"tolerance": 1}})"});
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  const std::vector<float> prediction = {1, 2, 3, 4}, target = {1, 2.5, 3.01, 6}, weights = {1, 3};
  std::vector<double> sums(SumCount(*metrics));
  AddToSums(*metrics, {{2, 2}, prediction, target, weights}, sums);
  EXPECT_EQ(MetricResults(*metrics, sums, 2), (std::vector<double>{0.5, (1 + 0.5 * 3) / 4}));
}

}  // namespace
}  // namespace shoal
