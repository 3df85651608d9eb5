#include "common/step_plan/round_plan.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "tests/fakes/test_seed.h"

namespace shoal {

void PrintTo(const Round& round, std::ostream* out) {
  *out << "round " << round.number << ": [" << round.first << ", " << round.end() << ")";
}

namespace {

constexpr uint64_t kMaxStep = std::numeric_limits<uint64_t>::max();

// 10 examples in steps of 1, in rounds of 4: 4, 4 and 2 steps an epoch.
RoundPlan Tens(uint64_t epochs, uint64_t steps, uint64_t max = 4) {
  return RoundPlan(StepPlan(10, 1, epochs, steps), max);
}

TEST(RoundPlanTest, ARoundEndsWhereAnEpochEnds) {
  const RoundPlan rounds = Tens(/*epochs=*/2, /*steps=*/0);
  EXPECT_EQ(rounds.Of(0), (Round{0, 4, 0}));
  EXPECT_EQ(rounds.Of(3), (Round{0, 4, 0}));
  EXPECT_EQ(rounds.Of(4), (Round{4, 4, 1}));
  EXPECT_EQ(rounds.Of(9), (Round{8, 2, 2}));
  EXPECT_EQ(rounds.Of(10), (Round{10, 4, 3}));
  EXPECT_EQ(rounds.Of(19), (Round{18, 2, 5}));
}

TEST(RoundPlanTest, ARoundEndsWhereTheJobEnds) {
  const RoundPlan rounds = Tens(/*epochs=*/0, /*steps=*/15);
  EXPECT_EQ(rounds.Of(13), (Round{10, 4, 3}));
  EXPECT_EQ(rounds.Of(14), (Round{14, 1, 4}));
  EXPECT_EQ(rounds.StartAt(15), 15u) << "after the last step";
  EXPECT_EQ(rounds.StartAt(99), 15u);
}

TEST(RoundPlanTest, NextStartIsWhereACutMayBe) {
  const RoundPlan rounds = Tens(/*epochs=*/0, /*steps=*/15);
  EXPECT_EQ(rounds.NextStart(0), 0u);
  EXPECT_EQ(rounds.NextStart(1), 4u);
  EXPECT_EQ(rounds.NextStart(4), 4u);
  EXPECT_EQ(rounds.NextStart(9), 10u) << "the end of the epoch";
  EXPECT_EQ(rounds.NextStart(14), 14u);
  EXPECT_EQ(rounds.NextStart(15), 15u);
  EXPECT_EQ(rounds.NextStart(kMaxStep), 15u);
}

TEST(RoundPlanTest, CountsRoundsThatAreWhole) {
  const RoundPlan rounds = Tens(/*epochs=*/0, /*steps=*/15);
  EXPECT_EQ(rounds.CompleteRoundsBelow(0), 0u);
  EXPECT_EQ(rounds.CompleteRoundsBelow(3), 0u);
  EXPECT_EQ(rounds.CompleteRoundsBelow(4), 1u);
  EXPECT_EQ(rounds.CompleteRoundsBelow(10), 3u);
  EXPECT_EQ(rounds.CompleteRoundsBelow(14), 4u);
  EXPECT_EQ(rounds.CompleteRoundsBelow(15), 5u);
  EXPECT_EQ(rounds.CompleteRoundsBelow(kMaxStep), 5u);
}

TEST(RoundPlanTest, OneStepARoundIsEachStepItself) {
  const RoundPlan rounds = Tens(/*epochs=*/3, /*steps=*/0, /*max=*/1);
  for (uint64_t step = 0; step < 30; ++step) EXPECT_EQ(rounds.Of(step), (Round{step, 1, step}));
}

TEST(RoundPlanTest, RoundsFollowOneAnotherThroughEveryStepOnce) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 200; ++i) {
    const uint64_t examples = 1 + random() % 60, batch_size = 1 + random() % 5;
    const bool by_steps = random() % 2 == 0;
    const StepPlan plan(examples, batch_size, by_steps ? 0 : 1 + random() % 4,
                        by_steps ? 1 + random() % 200 : 0);
    const RoundPlan rounds(plan, 1 + random() % 12);
    uint64_t first = 0;
    for (uint64_t number = 0; first < plan.total_steps(); ++number) {
      const Round round = rounds.Of(first);
      ASSERT_EQ(round.first, first);
      ASSERT_EQ(round.number, number);
      ASSERT_GE(round.count, 1u);
      ASSERT_LE(round.count, rounds.max_steps());
      ASSERT_LE(round.end(), plan.EpochEnd(plan.EpochOf(first)));
      const bool is_short = round.count < rounds.max_steps();
      ASSERT_TRUE(!is_short || round.end() == plan.EpochEnd(plan.EpochOf(first)));
      for (uint64_t step = first; step < round.end(); ++step) {
        ASSERT_EQ(rounds.Of(step), round);
        ASSERT_EQ(rounds.StartAt(step), first);
        ASSERT_EQ(rounds.StartsAt(step), step == first);
        ASSERT_EQ(rounds.CompleteRoundsBelow(step), number);
      }
      first = round.end();
    }
    ASSERT_EQ(first, plan.total_steps());
  }
}

TEST(RoundPlanTest, TheLongestJobHasRoundsToo) {
  const RoundPlan rounds(StepPlan(kMaxStep, 1, /*epochs=*/1, /*steps=*/0), 1 << 20);
  const Round last = rounds.Of(kMaxStep - 1);
  EXPECT_TRUE(last.Contains(kMaxStep - 1));
  EXPECT_EQ(last.end(), kMaxStep);
}

}  // namespace
}  // namespace shoal
