// The end of a run with an evaluator, and its successor.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/coordinator/scripted_evaluator.h"

namespace shoal {
namespace {

using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(TrainingEvaluatorTest, TheEndWaitsForTheLastEvaluationAndForNobodyElse) {
  ScriptedCluster cluster(WithTestSet());
  ScriptedEvaluator evaluator(&cluster);
  evaluator.GetReady();
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishAll(worker);
  ASSERT_TRUE(worker.job_done);
  cluster.Disconnect(worker);
  EXPECT_TRUE(cluster.ps[0]->stopped);
  cluster.Advance(seconds(40));
  EXPECT_FALSE(cluster.over.has_value());
  EXPECT_THAT(cluster.run->Status().waiting(), ElementsAre(HasSubstr("last checkpoint")));
  EXPECT_EQ(cluster.run->Status().phase(), "finished");
  evaluator.Take();
  EXPECT_FALSE(evaluator.job_done);
  // Both epochs' ends, and nothing within one.
  while (evaluator.order.evaluation() != 0) evaluator.Finish(evaluator.orders.back());
  EXPECT_TRUE(evaluator.job_done);
  EXPECT_FALSE(cluster.over.has_value()) << "it has not gone";
  evaluator.Die();
  ASSERT_TRUE(cluster.over.has_value() && cluster.over->ok());
  EXPECT_THAT(TestLosses(cluster), ElementsAre(kEpochSteps, 2 * kEpochSteps));
}

TEST(TrainingEvaluatorTest, TheEndDoesNotWaitForOneThatIsGone) {
  ScriptedCluster cluster(WithTestSet());
  ScriptedEvaluator evaluator(&cluster);
  evaluator.GetReady();
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishAll(worker);
  evaluator.Die();
  cluster.Disconnect(worker);
  EXPECT_FALSE(cluster.over.has_value()) << "it may come back";
  cluster.Advance(seconds(11));
  ASSERT_TRUE(cluster.over.has_value() && cluster.over->ok());
}

TEST(TrainingEvaluatorTest, ToldToStopTheEndWaitsNoLonger) {
  ScriptedCluster cluster(WithTestSet());
  ScriptedEvaluator evaluator(&cluster);
  evaluator.GetReady();
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishAll(worker);
  cluster.Disconnect(worker);
  EXPECT_FALSE(cluster.over.has_value());
  cluster.run->Stop();
  cluster.Settle();
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_TRUE(cluster.over->ok()) << "the job is done";
}

TEST(TrainingEvaluatorTest, ASuccessorHasTheLastCheckpointEvaluated) {
  ScriptedCluster cluster(WithTestSet());
  auto evaluator = std::make_unique<ScriptedEvaluator>(&cluster);
  evaluator->GetReady();
  ScriptedWorker& worker = cluster.Join(0);
  FinishEpoch(&cluster, worker);
  evaluator->Take();
  while (ScriptedEvaluator::Step(evaluator->order.checkpoint()) != kEpochSteps)
    evaluator->Finish(9);
  evaluator->Finish(3);
  FinishEpoch(&cluster, worker);
  ASSERT_TRUE(worker.job_done);
  cluster.Disconnect(worker);
  // kill -9
  for (auto& ps : cluster.ps) ps->Restart();
  evaluator.reset();
  cluster.StartCoordinator();
  ScriptedEvaluator again(&cluster);
  again.GetReady();
  cluster.Advance(seconds(12));
  again.Take();
  ASSERT_EQ(again.orders, std::vector<uint64_t>{2 * kEpochSteps}) << "and no other";
  again.Finish(2);
  EXPECT_TRUE(again.job_done);
  again.Die();
  ASSERT_TRUE(cluster.over.has_value() && cluster.over->ok());
  EXPECT_THAT(TestLosses(cluster), ElementsAre(3, 2));
}

TEST(TrainingEvaluatorTest, ASuccessorGoesOnWithWhatIsNotEvaluated) {
  ScriptedCluster cluster(WithTestSet());
  auto evaluator = std::make_unique<ScriptedEvaluator>(&cluster);
  evaluator->GetReady();
  ScriptedWorker& worker = cluster.Join(0);
  for (int i = 0; i < 7; ++i) cluster.FinishStep(worker);
  evaluator->Take();
  ASSERT_THAT(evaluator->orders, ElementsAre(5));
  evaluator->Finish(3);
  evaluator.reset();
  cluster.StartCoordinator();
  ScriptedEvaluator again(&cluster);
  again.GetReady();
  ScriptedWorker& worker_again = cluster.Join({.index = 0, .incarnation = 2});
  again.Take();
  EXPECT_THAT(again.orders, IsEmpty()) << "that at step 5 is known";
  FinishEpoch(&cluster, worker_again);
  again.Take();
  EXPECT_THAT(again.orders, Not(IsEmpty()));
  EXPECT_THAT(again.orders, Not(Contains(5)));
}

}  // namespace
}  // namespace shoal
