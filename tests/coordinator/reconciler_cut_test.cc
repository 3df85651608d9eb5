// Cuts and the limits of leases in a turn: 5 and 6 of Reconciler::Turn.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/reconciler_fixture.h"

namespace shoal {
namespace {

using testing::IsEmpty;
using testing::Not;

TEST_F(ReconcilerTest, ADueCutBegins) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithCutsEvery(5)));
  Turn();
  EXPECT_EQ(CutStep(), 5u);
  EXPECT_FALSE(parts_->checkpointer->held());
  EXPECT_EQ(parts_->cuts->last().step, 5u);
  EXPECT_FALSE(parts_->drain_cut);
}

TEST_F(ReconcilerTest, NoCutBeginsBeforeTheHistoryIsRead) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithCutsEvery(5)));
  loop_.set_hold_offloads(true);
  parts_->history->ReadEarlier();
  Turn();
  EXPECT_EQ(CutStep(), std::nullopt);
  loop_.set_hold_offloads(false);
  loop_.RunUntilIdle();
  Turn();
  EXPECT_EQ(CutStep(), 5u);
}

TEST_F(ReconcilerTest, WorkersEvaluateAHeldCut) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithTestSet()));
  DoneBelow(5);
  Turn();
  EXPECT_EQ(CutStep(), kEpochSteps);
  EXPECT_TRUE(parts_->checkpointer->held());
}

TEST_F(ReconcilerTest, TheEvaluatorNeedsNoHeldCut) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithTestSet()));
  JoinEvaluator();
  DoneBelow(5);
  Turn();
  EXPECT_EQ(CutStep(), kEpochSteps);
  EXPECT_FALSE(parts_->checkpointer->held());
}

TEST_F(ReconcilerTest, ACutAtAKnownStepGetsAFreshTerm) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  DoneBelow(2 * kEpochSteps);
  parts_->cuts->Began(2 * kEpochSteps, loop_.Now());
  const uint64_t term = fleet_->term();
  Turn();
  EXPECT_EQ(CutStep(), 2 * kEpochSteps);
  EXPECT_GT(fleet_->term(), term);
}

TEST_F(ReconcilerTest, AStopCutsTheDoneSteps) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  DoneBelow(3);
  parts_->drain->Stop();
  Turn();
  EXPECT_EQ(CutStep(), 3u);
  EXPECT_TRUE(parts_->drain_cut);
  EXPECT_EQ(parts_->scheduler->steps().limit(), 3u);
}

// --- 6. Limits ---

TEST_F(ReconcilerTest, LeasesPassACutOnceAllPsHaveAcceptedIt) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithCutsEvery(5)));
  Turn();
  EXPECT_EQ(parts_->scheduler->steps().limit(), 5u);
  AcceptCut();
  Turn();
  EXPECT_EQ(parts_->scheduler->steps().limit(), 2 * kEpochSteps);
}

TEST_F(ReconcilerTest, NoLeasePassesAnEvaluatedEpoch) {
  ASSERT_NO_FATAL_FAILURE(Begin(WithTestSet()));
  Turn();
  EXPECT_EQ(CutStep(), std::nullopt) << "its end is far";
  EXPECT_EQ(parts_->scheduler->steps().limit(), kEpochSteps);
}

TEST_F(ReconcilerTest, NothingIsLeasedWhileLeasesAreRevoked) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  workers_.Join(0);
  Turn();
  EXPECT_THAT(workers_.Leases(0), Not(IsEmpty()));
  parts_->drain->Stop();
  Turn();
  ASSERT_TRUE(parts_->scheduler->revoking());
  EXPECT_EQ(parts_->scheduler->steps().limit(), 0u);
  EXPECT_EQ(CutStep(), std::nullopt);
}

}  // namespace
}  // namespace shoal
