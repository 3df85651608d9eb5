#include "ps/store/applied_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/ps/store/applied_steps.h"

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(AppliedSetTest, BeginsEmpty) {
  const AppliedSet set(100);
  EXPECT_EQ(set.base(), 0u);
  EXPECT_EQ(set.limit(), 128u);
  EXPECT_EQ(set.end(), 0u);
  EXPECT_EQ(CountSteps(set), 0u);
  EXPECT_FALSE(set.Contains(0));
  EXPECT_FALSE(set.Contains(UINT64_MAX));
}

TEST(AppliedSetTest, BaseMovesOverStepsDoneBefore) {
  AppliedSet set(64);
  set.Add(2);
  set.Add(1);
  EXPECT_EQ(set.base(), 0u);
  EXPECT_THAT(StepsAfterBase(set), ElementsAre(1, 2));
  set.Add(0);
  EXPECT_EQ(set.base(), 3u);
  EXPECT_EQ(set.end(), 3u);
  EXPECT_THAT(StepsAfterBase(set), IsEmpty());
  EXPECT_TRUE(set.Contains(2));
  EXPECT_FALSE(set.Contains(3));
}

TEST(AppliedSetTest, WindowIsFullAndGoesOn) {
  AppliedSet set(0);
  EXPECT_EQ(set.limit(), 64u);
  for (uint64_t step = 63; step > 0; --step) set.Add(step);
  EXPECT_EQ(set.base(), 0u);
  set.Add(0);
  EXPECT_EQ(set.base(), 64u);
  EXPECT_EQ(set.limit(), 128u);
  EXPECT_FALSE(set.Contains(64));
}

TEST(AppliedSetTest, Reset) {
  AppliedSet set(64);
  set.Add(5);
  set.Reset(1000);
  EXPECT_EQ(set.base(), 1000u);
  EXPECT_EQ(set.end(), 1000u);
  EXPECT_EQ(CountSteps(set), 1000u);
  EXPECT_TRUE(set.Contains(999));
  EXPECT_FALSE(set.Contains(1000));
  EXPECT_THAT(StepsAfterBase(set), IsEmpty());
}

TEST(AppliedSetTest, AgreesWithASet) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const uint64_t window = random() % 300;
    AppliedSet set(window);
    const uint64_t start = random() % 1000;
    set.Reset(start);
    std::set<uint64_t> reference;
    for (int i = 0; i < 2000; ++i) {
      const uint64_t step =
          set.base() + random() % std::min<uint64_t>(set.limit() - set.base(), 1 + random() % 300);
      ASSERT_EQ(set.Contains(step), reference.count(step) == 1);
      if (reference.insert(step).second) set.Add(step);
      uint64_t base = start;
      while (reference.count(base) == 1) ++base;
      ASSERT_EQ(set.base(), base);
      ASSERT_EQ(CountSteps(set), start + reference.size());
      ASSERT_EQ(set.end(), std::max(start, *reference.rbegin() + 1));
      ASSERT_EQ(StepsAfterBase(set),
                std::vector<uint64_t>(reference.lower_bound(base), reference.end()));
    }
  }
}

}  // namespace
}  // namespace shoal
