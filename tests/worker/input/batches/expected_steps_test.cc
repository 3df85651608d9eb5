#include "worker/input/batches/expected_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "tests/fakes/test_seed.h"

namespace shoal {
namespace {

std::vector<uint64_t> Drain(ExpectedSteps steps) {
  std::vector<uint64_t> order;
  while (const auto step = steps.FirstUnknown(std::set<uint64_t>{})) {
    order.push_back(*step);
    steps.Remove(*step);
  }
  return order;
}

TEST(ExpectedStepsTest, KeepsTheOrderOfAnnouncement) {
  ExpectedSteps steps;
  EXPECT_TRUE(Drain(steps).empty());
  steps.Add(5, 7);
  steps.Add(0, 2);
  steps.Add(3, 3);
  EXPECT_EQ(Drain(steps), (std::vector<uint64_t>{5, 6, 0, 1}));
  steps.Clear();
  EXPECT_TRUE(Drain(steps).empty());
}

TEST(ExpectedStepsTest, AStepAnnouncedTwiceIsThereOnce) {
  ExpectedSteps steps;
  steps.Add(4, 6);
  steps.Add(8, 9);
  steps.Add(2, 11);
  EXPECT_EQ(Drain(steps), (std::vector<uint64_t>{4, 5, 8, 2, 3, 6, 7, 9, 10}));
}

TEST(ExpectedStepsTest, RemovingSplitsARange) {
  ExpectedSteps steps;
  steps.Add(0, 5);
  steps.Add(7, 9);
  steps.Remove(2);
  steps.Remove(0);
  steps.Remove(8);
  steps.Remove(100);
  EXPECT_EQ(Drain(steps), (std::vector<uint64_t>{1, 3, 4, 7}));
}

TEST(ExpectedStepsTest, SkipsWhatTheCallerHas) {
  ExpectedSteps steps;
  steps.Add(0, 2);
  steps.Add(10, 12);
  EXPECT_EQ(steps.FirstUnknown(std::set<uint64_t>{0, 1, 10}), 11u);
  EXPECT_EQ(steps.FirstUnknown(std::set<uint64_t>{0, 1, 10, 11}), std::nullopt);
}

TEST(ExpectedStepsTest, HugeRangesCostNothing) {
  ExpectedSteps steps;
  steps.Add(0, std::numeric_limits<uint64_t>::max());
  steps.Remove(uint64_t{1} << 60);
  steps.Add(0, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(steps.FirstUnknown(std::set<uint64_t>{0, 1, 2}), 3u);
}

// Against a plain list.
TEST(ExpectedStepsTest, AgreesWithAList) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 500; ++round) {
    ExpectedSteps steps;
    std::vector<uint64_t> list;
    for (int action = 0; action < 40; ++action) {
      const uint64_t begin = random() % 30;
      if (random() % 2 == 0) {
        const uint64_t end = begin + random() % 10;
        steps.Add(begin, end);
        for (uint64_t step = begin; step < end; ++step) {
          if (std::find(list.begin(), list.end(), step) == list.end()) list.push_back(step);
        }
      } else {
        steps.Remove(begin);
        std::erase(list, begin);
      }
      ASSERT_EQ(Drain(steps), list);
    }
  }
}

}  // namespace
}  // namespace shoal
