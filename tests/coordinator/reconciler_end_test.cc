// The end of the job and the callbacks in a turn: 4 of Reconciler::Turn.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/reconciler_fixture.h"

namespace shoal {
namespace {

using testing::IsEmpty;
using testing::Not;

TEST_F(ReconcilerTest, AFinishedJobIsSavedFromItsFinalCheckpoint) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  DoneBelow(2 * kEpochSteps);
  StoreEndOf(1);
  Turn();
  EXPECT_EQ(parts_->shutdown->phase(), Phase::kSaving);
}

TEST_F(ReconcilerTest, AFinalCheckpointThatIsNotFiniteFailsTheRun) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  DoneBelow(2 * kEpochSteps);
  StoredCheckpoint last = StoreEndOf(1);
  last.manifest.not_finite = "dense/kernel";
  parts_->checkpointer->SetLast(last);
  Turn();
  EXPECT_FALSE(parts_->shutdown->working());
  EXPECT_FALSE(parts_->shutdown->failure().empty());
}

TEST_F(ReconcilerTest, TheLastEvaluationDelaysTheEnd) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithTestSet()));
  DoneBelow(2 * kEpochSteps);
  StoreEndOf(1);
  BeginEvaluation();
  Turn();
  EXPECT_TRUE(parts_->shutdown->working());
  EXPECT_EQ(CutStep(), std::nullopt);
  parts_->scheduler->EndEvaluation();
  Turn();
  EXPECT_EQ(parts_->shutdown->phase(), Phase::kSaving);
}

TEST_F(ReconcilerTest, AnEpochWithItsResultAndCheckpointIsDecided) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithCallback()));
  Evaluated({0.5});
  StoreEndOf(0);
  EXPECT_EQ(parts_->cuts->epoch(), 0u);
  Turn();
  EXPECT_THAT(TakeCauses(), Not(IsEmpty()));
  EXPECT_EQ(parts_->cuts->epoch(), 1u);
  EXPECT_TRUE(parts_->shutdown->working());
  Turn();
  EXPECT_EQ(parts_->scheduler->steps().limit(), 2 * kEpochSteps);
}

TEST_F(ReconcilerTest, TheCallbacksMayEndTheTraining) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithCallback()));
  Evaluated({0.5, 0.9});
  parts_->cuts->EpochDecided();
  StoreEndOf(1);
  Turn();
  loop_.RunUntilIdle();
  EXPECT_FALSE(parts_->shutdown->working());
  EXPECT_EQ(parts_->shutdown->failure(), "");
}

TEST_F(ReconcilerTest, AnEpochIsNotDecidedBeforeItsLastReports) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithCallback()));
  Evaluated({0.5});
  StoreEndOf(0);
  parts_->history->Begin(*parts_->plan, kEpochSteps - 1, nullptr);
  parts_->progress.SetTestResult(0, 0.5, {1});
  parts_->scheduler->steps().Undo({kEpochSteps - 1});
  Turn();
  loop_.RunUntilIdle();
  EXPECT_EQ(parts_->cuts->epoch(), 0u);
  EXPECT_EQ(CutStep(), std::nullopt);
}

TEST_F(ReconcilerTest, ADecisionWaitsForTheEvaluatorsResult) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithCallback()));
  JoinEvaluator();
  DoneBelow(kEpochSteps);
  parts_->evaluator->Add(StoreEndOf(0));
  Turn();
  EXPECT_EQ(CutStep(), std::nullopt);
}

TEST_F(ReconcilerTest, WithoutTheEvaluatorTheStepIsCutAgainAndHeld) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithCallback()));
  DoneBelow(kEpochSteps);
  StoreEndOf(0);
  Turn();
  EXPECT_EQ(CutStep(), kEpochSteps);
  EXPECT_TRUE(parts_->checkpointer->held());
}

}  // namespace
}  // namespace shoal
