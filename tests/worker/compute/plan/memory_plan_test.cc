#include "worker/compute/plan/memory_plan.h"

#include <gtest/gtest.h>

#include <random>

namespace shoal {
namespace {

TEST(MemoryPlanTest, TensorsThatDoNotMeetShareMemory) {
  const MemoryPlan plan = PlanMemory({{1000, 0, 1}, {1000, 1, 2}, {1000, 2, 3}, {1000, 3, 4}});
  EXPECT_EQ(plan.size_bytes, 2 * 1024);
  EXPECT_EQ(plan.offsets[0], plan.offsets[2]);
  EXPECT_EQ(plan.offsets[1], plan.offsets[3]);
  EXPECT_NE(plan.offsets[0], plan.offsets[1]);
}

TEST(MemoryPlanTest, NothingNeedsNothing) { EXPECT_EQ(PlanMemory({}).size_bytes, 0); }

TEST(MemoryPlanTest, NoTwoLivingTensorsOverlap) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::vector<Lifetime> lifetimes(40);
    int64_t total = 0;
    for (Lifetime& lifetime : lifetimes) {
      lifetime.size_bytes = random() % 5000;
      lifetime.first_step = random() % 30;
      lifetime.last_step = lifetime.first_step + random() % 8;
      total += lifetime.size_bytes + 63;
    }
    const MemoryPlan plan = PlanMemory(lifetimes);
    EXPECT_LE(plan.size_bytes, total);
    for (size_t a = 0; a < lifetimes.size(); ++a) {
      EXPECT_EQ(plan.offsets[a] % 64, 0);
      EXPECT_LE(plan.offsets[a] + lifetimes[a].size_bytes, plan.size_bytes);
      for (size_t b = 0; b < a; ++b) {
        const bool meet = lifetimes[a].first_step <= lifetimes[b].last_step &&
                          lifetimes[b].first_step <= lifetimes[a].last_step;
        const bool apart = plan.offsets[a] + lifetimes[a].size_bytes <= plan.offsets[b] ||
                           plan.offsets[b] + lifetimes[b].size_bytes <= plan.offsets[a];
        EXPECT_TRUE(!meet || apart) << a << " and " << b;
      }
    }
  }
}

}  // namespace
}  // namespace shoal
