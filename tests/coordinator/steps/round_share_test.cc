#include "coordinator/steps/round_share.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

// Of a worker that has nothing before it.
Backlog Idle(double step_seconds) { return {step_seconds, 0}; }

TEST(RoundShareTest, WorkersOfEqualSpeedGetWhatTheyWant) {
  EXPECT_EQ(ShareOfRound(Idle(1), {Idle(1)}, 4, 8), 4u);
  EXPECT_EQ(ShareOfRound(Idle(1), {Idle(1)}, 8, 8), 4u) << "the other has done the rest by then";
  EXPECT_EQ(ShareOfRound(Idle(1), {}, 8, 8), 8u) << "alone";
  EXPECT_EQ(ShareOfRound(Idle(1), {}, 8, 3), 3u);
}

// The round of 8 is over after 7 s with 7 + 1, after 8 with 6 + 2.
TEST(RoundShareTest, ASlowWorkerDoesNotHoldTheRoundUp) {
  EXPECT_EQ(ShareOfRound(Idle(4), {Idle(1)}, 2, 8), 1u);
  EXPECT_EQ(ShareOfRound(Idle(1), {{4, 4}}, 7, 7), 7u);
  EXPECT_EQ(ShareOfRound(Idle(4), {Idle(1)}, 2, 3), 0u) << "they are done before it";
  EXPECT_EQ(ShareOfRound(Idle(4), {Idle(1)}, 2, 4), 1u) << "at the same time";
}

TEST(RoundShareTest, StepsThatWorkersHoldCount) {
  EXPECT_EQ(ShareOfRound(Idle(4), {{1, 2.5}}, 1, 1), 0u) << "done after 3.5";
  EXPECT_EQ(ShareOfRound(Idle(4), {{1, 3.5}}, 1, 1), 1u) << "after 4.5";
  EXPECT_EQ(ShareOfRound({1, 4}, {Idle(1)}, 2, 4), 0u);
  EXPECT_EQ(ShareOfRound(Idle(4), {{1, 100}}, 2, 8), 2u) << "it stands still";
}

TEST(RoundShareTest, NothingIsExpectedOfAWorkerThatNobodyKnows) {
  EXPECT_EQ(ShareOfRound(Idle(4), {Idle(0)}, 2, 8), 2u);
  EXPECT_EQ(ShareOfRound(Idle(0), {Idle(1)}, 2, 8), 2u);
}

// Nothing would ever be done otherwise.
TEST(RoundShareTest, TheFirstToFinishAlwaysGetsAStep) {
  for (const std::vector<Backlog>& workers :
       {std::vector<Backlog>{{0.1, 7}, {4, 2}, {1, 3.5}, {1, 3.5}, {2, 2.6}},
        {{0.1, 0.2}, {0.1, 0.2}}}) {
    for (uint64_t left = 1; left <= 20; ++left) {
      int given = 0;
      for (size_t i = 0; i < workers.size(); ++i) {
        std::vector<Backlog> others = workers;
        others.erase(others.begin() + static_cast<int64_t>(i));
        given += ShareOfRound(workers[i], others, 1, left) > 0 ? 1 : 0;
      }
      EXPECT_GT(given, 0) << left;
    }
  }
}

}  // namespace
}  // namespace shoal
