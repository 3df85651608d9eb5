#include "coordinator/steps/staleness_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace shoal {
namespace {

bool MayLease(const StalenessBound& bound, uint64_t step, uint64_t base, bool came_back = false) {
  return bound.MayLease({.step = step, .base = base, .came_back = came_back});
}

TEST(StalenessBoundTest, NoneAtAllIsOneStepAfterTheOther) {
  StalenessBound bound(0);
  for (uint64_t step = 0; step < 3; ++step) {
    ASSERT_TRUE(MayLease(bound, step, step));
    bound.Leased(step);
    EXPECT_FALSE(MayLease(bound, step + 1, step));
    bound.Done(step);
  }
}

// Step 1 is out while 0 is done and 2 leased: two updates may come before it.
TEST(StalenessBoundTest, StepsDoneMeanwhileCountToo) {
  StalenessBound bound(1);
  bound.Leased(0);
  ASSERT_TRUE(MayLease(bound, 1, 0));
  bound.Leased(1);
  EXPECT_FALSE(MayLease(bound, 2, 0));
  bound.Done(0);
  EXPECT_FALSE(MayLease(bound, 2, 1)) << "no further from step 1 than the bound, but too many";
  bound.Done(1);
  EXPECT_TRUE(MayLease(bound, 2, 2));
}

TEST(StalenessBoundTest, AReturnedStepIsOutUntilItIsDone) {
  StalenessBound bound(1);
  bound.Leased(0);
  bound.Leased(1);
  bound.Done(1);
  EXPECT_FALSE(MayLease(bound, 2, 0)) << "whoever had step 0 may push it yet";
  ASSERT_TRUE(MayLease(bound, 0, 0, /*came_back=*/true));
  bound.Leased(0);
  EXPECT_TRUE(MayLease(bound, 2, 0)) << "it is pulled anew";
}

// Workers pull at some moment after the lease, push at some later one, and report after that.
TEST(StalenessBoundTest, NoUpdateIsStalerWhateverTheOrder) {
  struct Step {
    bool pulled = false;
    bool applied = false;
    uint64_t version = 0;
  };
  constexpr uint64_t kBounds = 7;
  uint64_t stalest[kBounds] = {};
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    const uint64_t max = seed % kBounds;
    StalenessBound bound(max);
    std::map<uint64_t, Step> out;
    uint64_t next = 0, version = 0;
    for (int i = 0; i < 2000; ++i) {
      const uint64_t base = out.empty() ? next : out.begin()->first;
      if (random() % 2 == 0 && MayLease(bound, next, base)) {
        bound.Leased(next);
        out[next++] = {};
      }
      if (out.empty()) continue;
      const auto any = std::next(out.begin(), static_cast<int64_t>(random() % out.size()));
      Step& step = any->second;
      if (!step.pulled) {
        step = {.pulled = true, .version = version};
      } else if (!step.applied) {
        stalest[max] = std::max(stalest[max], version - step.version);
        ++version;
        step.applied = true;
      } else {
        bound.Done(any->first);
        out.erase(any);
      }
    }
    EXPECT_GT(next, 100u) << "it stands still";
  }
  for (uint64_t max = 0; max < kBounds; ++max)
    EXPECT_EQ(stalest[max], max) << "beyond the bound, or stricter than need be";
}

}  // namespace
}  // namespace shoal
