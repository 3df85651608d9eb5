#include "common/optimizer/rate_scale.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

TEST(RateScaleTest, ChangesNothingUnlessToldSo) {
  EXPECT_EQ(RateScale().Of(1, 0), 1);
  EXPECT_EQ(RateScale().Of(1000, 7), 1);
}

TEST(RateScaleTest, DividesByStaleness) {
  const RateScale scale{.by_staleness = true};
  EXPECT_EQ(scale.Of(1, 0), 1);
  EXPECT_EQ(scale.Of(1, 1), 1);
  EXPECT_EQ(scale.Of(1, 4), 0.25);
}

TEST(RateScaleTest, GrowsInEqualPartsToItsFactor) {
  const RateScale scale{.factor = 5, .warmup_updates = 4};
  EXPECT_EQ(scale.Of(1, 0), 1);
  EXPECT_EQ(scale.Of(2, 0), 2);
  EXPECT_EQ(scale.Of(5, 0), 5);
  EXPECT_EQ(scale.Of(1'000'000, 0), 5);
  EXPECT_EQ((RateScale{.factor = 5}).Of(1, 0), 5) << "at once, without a warm-up";
  EXPECT_EQ((RateScale{.by_staleness = true, .factor = 6}).Of(9, 3), 2);
}

}  // namespace
}  // namespace shoal
