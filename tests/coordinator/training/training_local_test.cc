// The strategy local, as far as it is the coordinator's: a step is a block of batches.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/common/metrics/sample_value.h"
#include "tests/coordinator/scripted_cluster.h"

namespace shoal {
namespace {

using testing::HasSubstr;

// 200 examples in batches of 16, four a step: 4 steps an epoch, the last of one batch.
ScriptedCluster::Options Local() {
  return {.strategy = R"({"name": "local", "batches_per_step": 4, "min_shard_bytes": 256,
                          "chunk_bytes": 1024})"};
}

TEST(TrainingLocalTest, StepsAreBlocks) {
  ScriptedCluster cluster(Local());
  cluster.Join(0);
  EXPECT_EQ(cluster.run->Status().total_steps(), 8u);
  EXPECT_EQ(cluster.run->Status().steps_per_epoch(), 4u);
}

// An epoch of 200 examples: three blocks of 64, and one of 8.
TEST(TrainingLocalTest, AStepHasTheExamplesOfAllItsBatches) {
  ScriptedCluster cluster(Local());
  ScriptedWorker& worker = cluster.Join(0);
  worker.Report(0, 64);
  worker.Report(3, 8);
  cluster.Settle();
  EXPECT_EQ(cluster.run->Status().steps_done(), 2u);
  for (const auto& [step, examples] : {std::pair(1, 65), std::pair(1, 63), std::pair(7, 64)}) {
    ScriptedWorker& liar = cluster.Join({.index = 1, .incarnation = 7u + step + examples});
    liar.Report(step, examples);
    cluster.Settle();
    EXPECT_THAT(liar.rejected, HasSubstr(absl::StrCat("reported ", examples, " examples")));
    cluster.Disconnect(liar);
  }
  EXPECT_EQ(cluster.run->Status().steps_done(), 2u);
}

// The cut at the end is begun as soon as all blocks are leased, and blocks are long.
TEST(TrainingLocalTest, AStopDoesNotWaitForTheCutAtTheEndOfTheJob) {
  ScriptedCluster cluster(Local());
  ScriptedWorker& worker = cluster.Join(0);
  while (!worker.leased.contains(7)) cluster.FinishStep(worker);
  ASSERT_THAT(cluster.ps[0]->CutSteps(), testing::Contains(8));
  ASSERT_THAT(worker.leases, testing::ElementsAre(6, 7));
  worker.begun_below = 7;
  cluster.run->Stop();
  cluster.Settle();
  EXPECT_THAT(worker.leases, testing::ElementsAre(6)) << "7 was not begun";
  cluster.FinishAll(worker);
  EXPECT_THAT(worker.leased, testing::Not(testing::Contains(8)));
  EXPECT_THAT(cluster.StoredSteps(), testing::Contains(7));
  EXPECT_TRUE(cluster.over.has_value());
}

// Of the worker's optimizer, at the batch that comes next.
TEST(TrainingLocalTest, TheOuterOptimizerFollowsTheListedWorkers) {
  ScriptedCluster cluster(Local());
  cluster.Join(0);
  EXPECT_THAT(cluster.ps[0]->loads.at(0).job(), HasSubstr(R"("momentum_every":6)"));
  EXPECT_NEAR(*SampleValue(*cluster.run, "shoal_learning_rate"), 0.01, 1e-9) << "Adam's, not 0.7";
}

}  // namespace
}  // namespace shoal
