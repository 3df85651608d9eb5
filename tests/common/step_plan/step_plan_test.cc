#include "common/step_plan/step_plan.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

#include "tests/fakes/test_seed.h"

namespace shoal {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

void ExpectRange(const StepRange& range, uint64_t epoch, uint64_t first, uint64_t count) {
  EXPECT_EQ(range.epoch, epoch);
  EXPECT_EQ(range.first, first);
  EXPECT_EQ(range.count, count);
}

TEST(StepPlanTest, LastBatchOfAnEpochIsSmaller) {
  const StepPlan plan(/*examples=*/10, /*batch_size=*/4, /*epochs=*/2, /*steps=*/0);
  EXPECT_EQ(plan.steps_per_epoch(), 3u);
  EXPECT_EQ(plan.total_steps(), 6u);
  EXPECT_EQ(plan.epochs(), 2u);
  EXPECT_EQ(plan.examples(), 10u);
  ExpectRange(plan.Range(0), 0, 0, 4);
  ExpectRange(plan.Range(2), 0, 8, 2);
  ExpectRange(plan.Range(3), 1, 0, 4);
  ExpectRange(plan.Range(5), 1, 8, 2);
  EXPECT_EQ(plan.EpochOf(2), 0u);
  EXPECT_EQ(plan.EpochOf(3), 1u);
  EXPECT_EQ(plan.EpochEnd(0), 3u);
  EXPECT_EQ(plan.EpochEnd(1), 6u);
  EXPECT_EQ(plan.EpochEnd(2), 6u);
}

TEST(StepPlanTest, BatchesThatFitLeaveNoRest) {
  const StepPlan plan(12, 4, 1, 0);
  EXPECT_EQ(plan.total_steps(), 3u);
  ExpectRange(plan.Range(2), 0, 8, 4);
}

TEST(StepPlanTest, BatchLargerThanTheDataSet) {
  const StepPlan plan(3, 64, 5, 0);
  EXPECT_EQ(plan.total_steps(), 5u);
  ExpectRange(plan.Range(4), 4, 0, 3);
}

TEST(StepPlanTest, StepsCutTheLastEpochShort) {
  const StepPlan plan(10, 4, 0, 7);
  EXPECT_EQ(plan.total_steps(), 7u);
  EXPECT_EQ(plan.epochs(), 3u);
  EXPECT_EQ(plan.EpochEnd(1), 6u);
  EXPECT_EQ(plan.EpochEnd(2), 7u);
  EXPECT_EQ(StepPlan(10, 4, 0, 6).epochs(), 2u);
  EXPECT_EQ(StepPlan(10, 4, 0, 2).EpochEnd(0), 2u);
}

TEST(StepPlanTest, HugeNumbersDoNotOverflow) {
  const StepPlan many(kMax, 2, kMax, 0);
  EXPECT_EQ(many.steps_per_epoch(), kMax / 2 + 1);
  EXPECT_EQ(many.total_steps(), kMax);
  EXPECT_EQ(many.epochs(), 2u);
  EXPECT_EQ(many.EpochEnd(0), kMax / 2 + 1);
  EXPECT_EQ(many.EpochEnd(1), kMax);
  EXPECT_EQ(many.EpochEnd(kMax), kMax);
  ExpectRange(many.Range(kMax / 2), 0, kMax - 1, 1);

  const StepPlan one(kMax, kMax, 0, kMax);
  EXPECT_EQ(one.steps_per_epoch(), 1u);
  EXPECT_EQ(one.EpochEnd(kMax - 2), kMax - 1);
  EXPECT_EQ(one.EpochEnd(kMax - 1), kMax);
  ExpectRange(one.Range(kMax - 1), kMax - 1, 0, kMax);
}

// Promise 1: through plan and permutation, every epoch uses every example exactly once.
TEST(StepPlanTest, EveryEpochUsesEveryExampleOnce) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    const uint64_t examples = 1 + random() % 3000;
    const uint64_t batch_size = 1 + random() % 200;
    const uint64_t epochs = 1 + random() % 4;
    const uint64_t job_seed = random();
    const StepPlan plan(examples, batch_size, epochs, 0);
    std::vector<std::vector<int>> uses(epochs, std::vector<int>(examples));
    for (uint64_t step = 0; step < plan.total_steps(); ++step) {
      const StepRange range = plan.Range(step);
      ASSERT_LT(range.epoch, epochs);
      ASSERT_GE(range.count, 1u);
      ASSERT_LE(range.count, batch_size);
      const IndexPermutation permutation(examples, job_seed, range.epoch);
      for (uint64_t i = 0; i < range.count; ++i) ++uses[range.epoch][permutation(range.first + i)];
    }
    for (const std::vector<int>& epoch : uses) {
      ASSERT_EQ(epoch, std::vector<int>(examples, 1))
          << examples << " examples, batches of " << batch_size << ", job seed " << job_seed;
    }
  }
}

TEST(StepPlanDeathTest, NothingToPlanEndsTheProcess) {
  EXPECT_DEATH(StepPlan(0, 4, 1, 0), "examples=0");
  EXPECT_DEATH(StepPlan(4, 0, 1, 0), "batch_size=0");
  EXPECT_DEATH(StepPlan(4, 4, 0, 0), "epochs=0, steps=0");
  EXPECT_DEATH(StepPlan(4, 4, 1, 1), "epochs=1, steps=1");
}

}  // namespace
}  // namespace shoal
