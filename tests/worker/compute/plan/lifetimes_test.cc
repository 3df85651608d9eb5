#include "worker/compute/plan/lifetimes.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

TEST(FindLifetimesTest, FromTheFirstStepThatTouchesATensorToTheLast) {
  const std::vector<Lifetime> lifetimes = FindLifetimes({{0, 1}, {1, 3}, {1, 1}, {0, 3}}, 4);
  ASSERT_EQ(lifetimes.size(), 4u);
  EXPECT_EQ(lifetimes[0].first_step, 0);
  EXPECT_EQ(lifetimes[0].last_step, 3);
  EXPECT_EQ(lifetimes[1].first_step, 0);
  EXPECT_EQ(lifetimes[1].last_step, 2);
  EXPECT_EQ(lifetimes[2].first_step, -1) << "touched by none";
  EXPECT_EQ(lifetimes[2].last_step, -1);
  EXPECT_EQ(lifetimes[3].first_step, 1);
  EXPECT_EQ(lifetimes[3].last_step, 3);
}

}  // namespace
}  // namespace shoal
