#include "common/step_plan/batch_plan.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "tests/fakes/test_seed.h"

namespace shoal {
namespace {

TEST(BatchPlanTest, AStepIsOneBatchUnlessToldOtherwise) {
  const BatchPlan plan({.examples = 10, .batch_size = 4, .epochs = 2});
  EXPECT_EQ(plan.steps().total_steps(), 6u);
  EXPECT_EQ(plan.batches().total_steps(), 6u);
  for (uint64_t step = 0; step < 6; ++step) {
    EXPECT_EQ(plan.BatchesOf(step).first, step);
    EXPECT_EQ(plan.BatchesOf(step).count, 1u);
  }
}

TEST(BatchPlanTest, NoBlockPassesAnEpochsEnd) {
  // 5 batches an epoch, in blocks of 2, 2 and 1.
  const BatchPlan plan({.examples = 10, .batch_size = 2, .batches_per_step = 2, .epochs = 2});
  EXPECT_EQ(plan.steps().steps_per_epoch(), 3u);
  EXPECT_EQ(plan.steps().total_steps(), 6u);
  EXPECT_EQ(plan.batches().total_steps(), 10u);
  EXPECT_EQ(plan.BatchesOf(1).first, 2u);
  EXPECT_EQ(plan.BatchesOf(1).count, 2u);
  EXPECT_EQ(plan.BatchesOf(2).first, 4u);
  EXPECT_EQ(plan.BatchesOf(2).count, 1u);
  EXPECT_EQ(plan.BatchesOf(3).first, 5u);
}

TEST(BatchPlanTest, AJobOfSoManyStepsHasTheirBatches) {
  const BatchPlan plan({.examples = 10, .batch_size = 2, .batches_per_step = 2, .steps = 5});
  EXPECT_EQ(plan.steps().total_steps(), 5u);
  EXPECT_EQ(plan.batches().total_steps(), 9u) << "2, 2 and 1, then 2 and 2";
}

TEST(BatchPlanTest, EveryBatchIsInOneStepWithItsExamples) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 300; ++round) {
    const bool by_steps = random() % 2 == 0;
    const BatchPlan plan({.examples = 1 + random() % 60,
                          .batch_size = 1 + random() % 7,
                          .batches_per_step = 1 + random() % 5,
                          .epochs = by_steps ? 0 : 1 + random() % 3,
                          .steps = by_steps ? 1 + random() % 40 : 0});
    uint64_t batch = 0;
    for (uint64_t step = 0; step < plan.steps().total_steps(); ++step) {
      const StepRange range = plan.steps().Range(step);
      const BatchPlan::Block block = plan.BatchesOf(step);
      ASSERT_EQ(block.first, batch);
      ASSERT_GE(block.count, 1u);
      uint64_t position = range.first;
      for (; batch < block.first + block.count; ++batch) {
        const StepRange part = plan.batches().Range(batch);
        ASSERT_EQ(part.epoch, range.epoch);
        ASSERT_EQ(part.first, position);
        position += part.count;
      }
      ASSERT_EQ(position, range.first + range.count);
    }
    ASSERT_EQ(batch, plan.batches().total_steps());
  }
}

TEST(BatchPlanTest, ABlockWithoutBatchesEndsTheProcess) {
  EXPECT_DEATH(BatchPlan({.examples = 10, .batch_size = 2, .batches_per_step = 0, .epochs = 1}),
               "batch_size=0");
}

}  // namespace
}  // namespace shoal
