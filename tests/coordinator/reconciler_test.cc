// A turn of the Reconciler, and a tick.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/term.h"
#include "tests/coordinator/reconciler_fixture.h"

namespace shoal {
namespace {

using std::chrono::seconds;
using testing::IsEmpty;
using testing::Not;

// --- 2. Outcomes ---

TEST_F(ReconcilerTest, ATurnRecordsTheOutcomesOfTheParts) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  parts_->checkpointer->Begin({.timeline = fleet_->timeline(), .step = 5, .term = fleet_->term()});
  parts_->checkpointer->Cancel("it takes too long");
  EXPECT_FALSE(parts_->cuts->last().failed);
  Turn();
  EXPECT_TRUE(parts_->cuts->last().failed);
  EXPECT_THAT(parts_->checkpointer->TakeOutcomes(), IsEmpty());
}

TEST_F(ReconcilerTest, AJobThatAPredecessorFinishedIsSaved) {
  takes_end_ = false;
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  const StoredCheckpoint last = WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 100);
  nobody_trains_ = true;
  loop_.Advance(seconds(1));
  Turn();
  EXPECT_EQ(parts_->shutdown->phase(), Phase::kSaving);
  EXPECT_EQ(parts_->checkpointer->last()->directory, last.directory);
}

TEST_F(ReconcilerTest, ARequestedCheckpointIsCutInTheSameTurn) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  DoneBelow(3);
  auto far = std::make_shared<FarEnd>(&loop_, "operator", kCheckpointMethod);
  far->set_callbacks(*parts_->requests->Accept(kCheckpointMethod, far->MakeStream()));
  far->Send(proto::CheckpointRequest());
  loop_.RunUntilIdle();
  EXPECT_FALSE(parts_->requests->checkpoint_wanted());
  Turn();
  EXPECT_TRUE(parts_->requests->checkpoint_wanted());
  EXPECT_EQ(CutStep(), 3u);
}

// --- 3. Epochs ---

TEST_F(ReconcilerTest, ATurnClosesTheEpochsWhoseStepsAreDone) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  DoneBelow(kEpochSteps);
  reconciler_->Turn(Cause::kReports);
  EXPECT_EQ(parts_->history->closed_epochs(), 0u) << "no worker has reported";
  Turn();
  EXPECT_EQ(parts_->history->closed_epochs(), 1u);
}

TEST_F(ReconcilerTest, WithoutATimelineNothingIsPlanned) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithCutsEvery(5)));
  workers_.Join(0);
  timeline_->OnOver("a ps was started again");
  Turn();
  EXPECT_EQ(CutStep(), std::nullopt);
  EXPECT_THAT(workers_.Leases(0), IsEmpty());
}

TEST_F(ReconcilerTest, AtTheEndOfTheRunNothingIsPlanned) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithCutsEvery(5)));
  workers_.Join(0);
  parts_->shutdown->Fail("the values are not finite");
  Turn();
  EXPECT_EQ(CutStep(), std::nullopt);
  EXPECT_THAT(workers_.Leases(0), IsEmpty());
}

// --- 7. Serving ---

TEST_F(ReconcilerTest, AfterAFactAllReadyWorkersAreOfferedWork) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  workers_.Join(0);
  workers_.Join(1);
  workers_.Join(2).ready = false;
  Turn();
  EXPECT_THAT(workers_.Leases(0), Not(IsEmpty()));
  EXPECT_THAT(workers_.Leases(1), Not(IsEmpty()));
  EXPECT_THAT(workers_.Leases(2), IsEmpty());
}

TEST_F(ReconcilerTest, TheFirstLeaseStartsTheClockOfItsEpoch) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  workers_.Join(0);
  Turn();
  EXPECT_THAT(parts_->scheduler->TakeLeased(), IsEmpty()) << "the turn has taken them";
  loop_.Advance(seconds(3));
  DoneBelow(kEpochSteps);
  EXPECT_EQ(parts_->progress.CloseEpoch(0, loop_.Now()).seconds(), 3);
}

TEST_F(ReconcilerTest, AfterReportsOnlyTheReportersAreOfferedWork) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  const Worker& reporter = workers_.Join(0);
  workers_.Join(1);
  parts_->reported = {reporter.key, reporter.key + 1000};  // the latter is gone
  reconciler_->Turn(Cause::kReports);
  EXPECT_THAT(parts_->reported, IsEmpty());
  EXPECT_THAT(workers_.Leases(0), Not(IsEmpty()));
  EXPECT_THAT(workers_.Leases(1), IsEmpty());
}

// --- Tick ---

TEST_F(ReconcilerTest, ATickIsATurnToo) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithCutsEvery(5)));
  workers_.Join(0);
  reconciler_->Tick();
  EXPECT_EQ(CutStep(), 5u);
  EXPECT_THAT(workers_.Leases(0), Not(IsEmpty()));
}

TEST_F(ReconcilerTest, ATickEndsAnEvaluationForALeavingPs) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithTestSet()));
  DoneBelow(3);
  BeginEvaluation();
  SendDeparting(0);
  reconciler_->Tick();
  EXPECT_NE(parts_->scheduler->evaluation(), nullptr);
  loop_.Advance(seconds(5));
  reconciler_->Tick();
  EXPECT_EQ(parts_->scheduler->evaluation(), nullptr);
}

}  // namespace
}  // namespace shoal
