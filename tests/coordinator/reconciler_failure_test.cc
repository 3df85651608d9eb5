// Failures and abandoned timelines in a turn: 1 of Reconciler::Turn.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/reconciler_fixture.h"

namespace shoal {
namespace {

using testing::IsEmpty;

TEST_F(ReconcilerTest, AFailureOfAPartEndsTheRunInTheNextTurn) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  const Worker& worker = workers_.Join(0);
  parts_->Fail({.status = absl::UnavailableError("too few descriptors")});
  parts_->Fail({.status = absl::DataLossError("not finite"), .ends_ps = true});
  EXPECT_FALSE(parts_->working());
  EXPECT_FALSE(parts_->shutdown->over());
  parts_->scheduler->Offer(*workers_.Find(0));
  parts_->scheduler->ServeQueue();
  EXPECT_EQ(parts_->scheduler->steps().held(worker.key), 0u);
  Turn();
  EXPECT_TRUE(parts_->shutdown->over());
  loop_.RunUntilIdle();
  ASSERT_TRUE(over_.has_value());
  EXPECT_TRUE(absl::IsUnavailable(*over_)) << "the first failure counts: " << *over_;
  EXPECT_THAT(workers_.Leases(0), IsEmpty());
}

TEST_F(ReconcilerTest, BeingFencedOffCountsBeforeOtherFailures) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  parts_->Fail({.status = absl::DataLossError("not finite"), .ends_ps = true});
  parts_->Fail({.status = absl::AbortedError("fenced off")});
  Turn();
  loop_.RunUntilIdle();
  ASSERT_TRUE(over_.has_value());
  EXPECT_TRUE(absl::IsAborted(*over_)) << *over_;
}

TEST_F(ReconcilerTest, AFailureForGoodIsToldToTheWorkers) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  parts_->lock->Acquire({}, [](const absl::Status&) {});
  workers_.Join(0);
  parts_->Fail({.status = absl::FailedPreconditionError("no room")});
  Turn();
  bool told = false;
  for (const proto::WorkerOrder& order : workers_.Orders(0))
    told = told || order.job_done().failure() == "no room";
  EXPECT_TRUE(told);
  EXPECT_FALSE(parts_->shutdown->over()) << "the worker has not gone";
}

TEST_F(ReconcilerTest, AFailureThatEndsThePsDismissesTheWorkersFirst) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  workers_.Join(0);
  parts_->Fail({.status = absl::DataLossError("not finite"), .ends_ps = true});
  Turn();
  EXPECT_EQ(parts_->shutdown->phase(), Phase::kDismissingWorkers);
  EXPECT_EQ(parts_->shutdown->failure(), "not finite");
}

TEST_F(ReconcilerTest, AnAbandonedTimelineIsClaimedAgain) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  timeline_->Abandon("a report was false", AbandonedTimeline::Remedy::kClaimAgain);
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kLeading) << "until the next turn";
  EXPECT_FALSE(parts_->scheduler->open());
  const uint64_t timeline = fleet_->timeline();
  Turn();
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kClaiming);
  EXPECT_FALSE(parts_->abandoned.has_value());
  loop_.RunUntilIdle();
  for (int i = 0; i < kPsCount; ++i) AnswerClaim(i, {.timeline = timeline, .base = 3});
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kLeading) << "it is adopted";
}

TEST_F(ReconcilerTest, APsThatLeavesAwaitsTheRemedyOfAnAbandonedTimeline) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  DoneBelow(1);
  timeline_->Abandon("a report was false", AbandonedTimeline::Remedy::kClaimAgain);
  SendDeparting(1);
  parts_->drain->OnPsDeparting(1);
  Turn();
  EXPECT_FALSE(ToldToStop(1)) << "nobody knows which steps it holds";
}

TEST_F(ReconcilerTest, AnAbandonedTimelineIsRestored) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  timeline_->Abandon("it does not fit the job", AbandonedTimeline::Remedy::kRestore);
  const uint64_t timeline = fleet_->timeline();
  Turn();
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kClaiming);
  loop_.RunUntilIdle();
  for (int i = 0; i < kPsCount; ++i) AnswerClaim(i, {.timeline = timeline, .base = 3});
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kLoading) << "it is not adopted";
}

TEST_F(ReconcilerTest, ATimelineThatIsOverMeanwhileIsNotAbandonedTwice) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  timeline_->Abandon("it does not fit", AbandonedTimeline::Remedy::kRestore);
  fleet_->ClaimAgain("a ps was started again");
  const uint64_t term = fleet_->term();
  Turn();
  EXPECT_EQ(fleet_->term(), term);
  EXPECT_FALSE(parts_->abandoned.has_value());
}

}  // namespace
}  // namespace shoal
