// The end of a run with an evaluator, and its successor.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/coordinator/training/training_evaluator_fixture.h"

namespace shoal {
namespace {

using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST_F(TrainingEvaluatorTest, TheEndWaitsForTheLastEvaluationAndForNobodyElse) {
  Begin(WithTestSet());
  cluster_->FinishAll(*worker_);
  ASSERT_TRUE(worker_->job_done);
  cluster_->Disconnect(*worker_);
  EXPECT_TRUE(cluster_->ps[0]->stopped);
  cluster_->Advance(seconds(40));
  EXPECT_FALSE(cluster_->over.has_value());
  EXPECT_THAT(cluster_->run->Status().waiting(), ElementsAre(HasSubstr("last checkpoint")));
  EXPECT_EQ(cluster_->run->Status().phase(), "finished");
  evaluator_->Take();
  EXPECT_FALSE(evaluator_->job_done);
  // Both epochs' ends, and nothing within one.
  while (evaluator_->order.evaluation() != 0) evaluator_->Finish(evaluator_->orders.back());
  EXPECT_TRUE(evaluator_->job_done);
  EXPECT_FALSE(cluster_->over.has_value()) << "it has not gone";
  evaluator_->Die();
  ASSERT_TRUE(cluster_->over.has_value() && cluster_->over->ok());
  EXPECT_THAT(TestLosses(*cluster_), ElementsAre(kEpochSteps, 2 * kEpochSteps));
}

TEST_F(TrainingEvaluatorTest, TheEndDoesNotWaitForOneThatIsGone) {
  Begin(WithTestSet());
  cluster_->FinishAll(*worker_);
  evaluator_->Die();
  cluster_->Disconnect(*worker_);
  EXPECT_FALSE(cluster_->over.has_value()) << "it may come back";
  cluster_->Advance(seconds(11));
  ASSERT_TRUE(cluster_->over.has_value() && cluster_->over->ok());
}

TEST_F(TrainingEvaluatorTest, ToldToStopTheEndWaitsNoLonger) {
  Begin(WithTestSet());
  cluster_->FinishAll(*worker_);
  cluster_->Disconnect(*worker_);
  EXPECT_FALSE(cluster_->over.has_value());
  cluster_->run->Stop();
  cluster_->Settle();
  ASSERT_TRUE(cluster_->over.has_value());
  EXPECT_TRUE(cluster_->over->ok()) << "the job is done";
}

TEST_F(TrainingEvaluatorTest, ASuccessorHasTheLastCheckpointEvaluated) {
  Begin(WithTestSet());
  FinishEpoch(&*cluster_, *worker_);
  evaluator_->Take();
  while (ScriptedEvaluator::Step(evaluator_->order.checkpoint()) != kEpochSteps)
    evaluator_->Finish(9);
  evaluator_->Finish(3);
  FinishEpoch(&*cluster_, *worker_);
  ASSERT_TRUE(worker_->job_done);
  cluster_->Disconnect(*worker_);
  // kill -9
  for (auto& ps : cluster_->ps) ps->Restart();
  evaluator_.reset();
  cluster_->StartCoordinator();
  ScriptedEvaluator again(&*cluster_);
  again.GetReady();
  cluster_->Advance(seconds(12));
  again.Take();
  ASSERT_EQ(again.orders, std::vector<uint64_t>{2 * kEpochSteps}) << "and no other";
  again.Finish(2);
  EXPECT_TRUE(again.job_done);
  again.Die();
  ASSERT_TRUE(cluster_->over.has_value() && cluster_->over->ok());
  EXPECT_THAT(TestLosses(*cluster_), ElementsAre(3, 2));
}

TEST_F(TrainingEvaluatorTest, ASuccessorGoesOnWithWhatIsNotEvaluated) {
  Begin(WithTestSet());
  for (int i = 0; i < 7; ++i) cluster_->FinishStep(*worker_);
  evaluator_->Take();
  ASSERT_THAT(evaluator_->orders, ElementsAre(5));
  evaluator_->Finish(3);
  evaluator_.reset();
  cluster_->StartCoordinator();
  ScriptedEvaluator again(&*cluster_);
  again.GetReady();
  ScriptedWorker& worker_again = cluster_->Join({.index = 0, .incarnation = 2});
  again.Take();
  EXPECT_THAT(again.orders, IsEmpty()) << "that at step 5 is known";
  FinishEpoch(&*cluster_, worker_again);
  again.Take();
  EXPECT_THAT(again.orders, Not(IsEmpty()));
  EXPECT_THAT(again.orders, Not(Contains(5)));
}

}  // namespace
}  // namespace shoal
