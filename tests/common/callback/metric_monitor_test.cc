#include "common/callback/metric_monitor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace shoal {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

MetricMonitor After(MetricMonitor::Options options, const std::vector<double>& values) {
  MetricMonitor monitor(std::move(options));
  for (size_t epoch = 0; epoch < values.size(); ++epoch) monitor.Take(epoch, values[epoch]);
  return monitor;
}

std::optional<uint64_t> BestEpoch(const MetricMonitor& monitor) {
  return monitor.best().has_value() ? std::optional(monitor.best()->epoch) : std::nullopt;
}

TEST(MetricMonitorTest, TheFirstAmongEqualsIsTheBest) {
  EXPECT_EQ(BestEpoch(After({}, {3, 1, 2, 1})), 1u);
  EXPECT_EQ(After({}, {3, 1, 2, 1}).best()->value, 1);
  EXPECT_EQ(BestEpoch(After({.maximize = true}, {1, 3, 3, 2})), 1u);
  EXPECT_EQ(BestEpoch(After({}, {})), std::nullopt);
}

TEST(MetricMonitorTest, EndsWhenPatienceHasRunOut) {
  EXPECT_EQ(After({.patience = 2}, {3, 1, 2}).ended_after(), std::nullopt);
  EXPECT_EQ(After({.patience = 2}, {3, 1, 2, 1}).ended_after(), 3u);
  EXPECT_EQ(After({.patience = 2}, {3, 1, 2, 0.5, 1, 1}).ended_after(), 5u);
  EXPECT_EQ(After({.patience = 0}, {3, 2, 2}).ended_after(), 2u);
  EXPECT_EQ(After({.patience = 1}, {3, 2, 2}).ended_after(), 2u) << "0 and 1 are the same";
  EXPECT_EQ(After({}, {1, 2, 3, 4, 5}).ended_after(), std::nullopt);
}

TEST(MetricMonitorTest, EpochsAfterTheEndChangeOnlyTheBest) {
  const MetricMonitor monitor = After({.patience = 1}, {3, 4, 1, 2});
  EXPECT_EQ(monitor.ended_after(), 1u);
  EXPECT_EQ(BestEpoch(monitor), 2u);
}

TEST(MetricMonitorTest, ATooSmallImprovementIsNoImprovement) {
  const MetricMonitor smaller = After({.min_delta = 0.5, .patience = 3}, {3, 2.5, 2.4, 2.5});
  EXPECT_EQ(BestEpoch(smaller), 2u);
  EXPECT_EQ(smaller.waited(), 1u);
  const MetricMonitor larger = After({.maximize = true, .min_delta = 0.5}, {1, 1.5, 1.4, 1.6});
  EXPECT_EQ(BestEpoch(larger), 3u);
}

TEST(MetricMonitorTest, AValueThatIsNotFiniteIsNeverTheBest) {
  const MetricMonitor monitor = After({.patience = 2}, {kNaN, -kInfinity, 3, kNaN, kNaN});
  EXPECT_EQ(BestEpoch(monitor), 2u);
  EXPECT_EQ(monitor.ended_after(), 1u) << "two epochs without a better one";
  EXPECT_EQ(After({.patience = 2}, {3, kNaN, kNaN}).ended_after(), 2u);
  EXPECT_EQ(After({.patience = 0}, {kNaN}).ended_after(), std::nullopt) << "the first of all";
  EXPECT_EQ(BestEpoch(After({.maximize = true}, {kInfinity, 1})), 1u);
}

// "Only restart wait if we beat both the baseline and our previous best."
TEST(MetricMonitorTest, OnlyWhatBeatsTheBaselineEndsTheWaiting) {
  const MetricMonitor monitor = After({.baseline = 1, .patience = 3}, {5, 4, 3, 3});
  EXPECT_EQ(BestEpoch(monitor), 2u);
  EXPECT_EQ(monitor.ended_after(), 3u);
  EXPECT_EQ(After({.baseline = 1, .patience = 3}, {5, 4, 0.5, 3, 3}).ended_after(), std::nullopt);
}

TEST(MetricMonitorTest, TheFirstEpochsMayBeLeftOut) {
  const MetricMonitor monitor = After({.start_from_epoch = 2, .patience = 1}, {1, 2, 3, 4});
  EXPECT_EQ(BestEpoch(monitor), 2u);
  EXPECT_EQ(monitor.ended_after(), 3u);
}

TEST(MetricMonitorTest, OnlyWhatBeatsTheThresholdMayBeTheBest) {
  EXPECT_EQ(BestEpoch(After({.threshold = 2}, {3, 2, 1.5, 1.8})), 2u);
}

}  // namespace
}  // namespace shoal
