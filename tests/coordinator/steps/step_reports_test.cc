#include "coordinator/steps/step_reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr uint64_t kWindow = 8;

proto::Claimed Applied(uint64_t base, const std::vector<uint64_t>& after = {}) {
  proto::Claimed claimed;
  claimed.set_base(base);
  for (const uint64_t step : after) claimed.add_applied_after_base(step);
  return claimed;
}

// Steps 0 to 9, of workers 1 and 2 in turn.
StepReports Ten() {
  StepReports reports;
  for (uint64_t step = 0; step < 10; ++step) reports.Add(step, 1 + step % 2);
  return reports;
}

TEST(StepReportsTest, APsThatHasAppliedAllLacksNothing) {
  EXPECT_FALSE(Ten().LackOf(Applied(10), 10, kWindow).any());
  EXPECT_FALSE(Ten().LackOf(Applied(6, {6, 7, 8, 9}), 10, kWindow).any());
  EXPECT_FALSE(Ten().LackOf(Applied(6), 6, kWindow).any()) << "later ones were not asked for";
}

TEST(StepReportsTest, LackingStepsAreNamedWithTheirReporters) {
  const StepReports::Lack lack = Ten().LackOf(Applied(4, {5, 7, 9}), 10, kWindow);
  EXPECT_TRUE(lack.any());
  EXPECT_FALSE(lack.unnamed);
  EXPECT_THAT(lack.steps, ElementsAre(4, 6, 8));
  EXPECT_THAT(lack.reporters, ElementsAre(Pair(1, 4))) << "worker 2 said what is so";
}

TEST(StepReportsTest, BeyondTheWindowAPsDoesNotTellWhichTheyAre) {
  const StepReports::Lack lack = Ten().LackOf(Applied(1), 10, kWindow);
  EXPECT_TRUE(lack.unnamed && lack.any());
  EXPECT_THAT(lack.steps, IsEmpty());
  EXPECT_THAT(lack.reporters, ElementsAre(Pair(1, 2), Pair(2, 1)));
}

TEST(StepReportsTest, NobodyIsBlamedForWhatAllPsHaveConfirmed) {
  StepReports reports = Ten();
  reports.Confirm(5);
  EXPECT_THAT(reports.LackOf(Applied(4), 5, kWindow).reporters, IsEmpty());
  EXPECT_THAT(reports.LackOf(Applied(4), 6, kWindow).reporters, ElementsAre(Pair(2, 5)));
  reports.Clear();
  EXPECT_THAT(reports.LackOf(Applied(4), 6, kWindow).reporters, IsEmpty());
}

TEST(StepReportsTest, OnlySoManyReportersAreRemembered) {
  StepReports reports;
  for (uint64_t step = 0; step <= 1 << 16; ++step) reports.Add(step, 1 + step);
  const StepReports::Lack lack = reports.LackOf(Applied(0), 3, kWindow);
  EXPECT_THAT(lack.steps, ElementsAre(0, 1, 2));
  EXPECT_THAT(lack.reporters, ElementsAre(Pair(2, 1), Pair(3, 2))) << "the oldest is forgotten";
}

}  // namespace
}  // namespace shoal
