#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/session/worker_session_fixture.h"
#include "worker/session/worker_session.h"

namespace shoal {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

// Also those that were on the way when it said so.
TEST_F(WorkerSessionTest, DrainsAfterTheStepsItHolds) {
  StartStep(7, 2);
  proto::WorkerOrder order;
  order.mutable_drain()->set_reason("make room");
  Order(order);
  session_->Drain("once more");
  ExpectDraining();
  Lease(40, 1);
  OrderEvaluation(13, 0);
  for (const char* step : {"step 70 7", "step 70 8", "step 70 40"}) {
    EXPECT_FALSE(coordinator().finished().has_value());
    FinishStep();
    EXPECT_THAT(TakeEvents(), ElementsAre(step));
  }
  ExpectLeaving("make room", false);
  ExpectOver(WorkerSession::End::kDrained);
}

// A coordinator that stops takes back what is not begun, once it knows how far all workers are.
TEST_F(WorkerSessionTest, HaltsUntilItMayGoOn) {
  StartStep(7, 4);
  TakeReports();
  computer_.FinishChunks();
  Halt();
  EXPECT_EQ(BegunBelow(), 8u);
  computer_.Finish();
  ServePs();
  EXPECT_THAT(TakeEvents(), ElementsAre("step 70 7")) << "what is begun is finished,";
  EXPECT_FALSE(computer_.busy()) << "and nothing else begun";
  computer_.TakeCalls();
  Resume(9);
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("cancel prefetch", "prefetch 8 1", "train 8"));
  FinishStep();
  EXPECT_FALSE(computer_.busy()) << "9 and 10 are not its own any more";
  Lease(9, 1);
  EXPECT_TRUE(computer_.busy()) << "until it is given one again";
}

// A block of local steps takes long: nobody waits for one of which nothing is anywhere.
TEST_F(WorkerSessionTest, CancelsAStepWithoutPushes) {
  StartStep(7, 3);
  TakeReports();
  OrderEvaluation(5, 2);
  computer_.TakeCalls();
  Halt();
  EXPECT_EQ(BegunBelow(), 0u);
  computer_.FinishChunks();
  Resume(7);
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("cancel all", "cancel prefetch"));
  EXPECT_THAT(computer_.expected_evaluations, ElementsAre(2)) << "that goes on";
  computer_.Finish(absl::CancelledError("cancelled"));
  ServePs();
  EXPECT_THAT(pushes_, IsEmpty());
  EXPECT_THAT(TakeEvents(), IsEmpty());
}

TEST_F(WorkerSessionTest, ComputesACancelledStepAgain) {
  StartStep(7, 1);
  Halt();
  computer_.FinishChunks();
  Resume(7);
  computer_.Finish(absl::CancelledError("cancelled"));
  Lease(7, 1);
  ServePs();
  EXPECT_TRUE(computer_.busy());
  FinishStep();
  EXPECT_THAT(TakeEvents(), ElementsAre("step 70 7"));
}

// What another has begun lies above it: it is no hole in the cut.
TEST_F(WorkerSessionTest, PushesAfterAHaltWhatIsNeeded) {
  StartStep(7, 3);
  computer_.TakeCalls();
  Halt();
  FinishStep();
  EXPECT_THAT(pushes_, IsEmpty()) << "not before it is known";
  Resume(8);
  ServePs();
  EXPECT_THAT(TakeEvents(), ElementsAre("step 70 7"));
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("cancel prefetch")) << "and is not computed twice";
}

// What is known not to have a gradient is as much of a step.
TEST_F(WorkerSessionTest, AHaltHoldsBackAStepThatIsSkipped) {
  StartStep(7, 3);
  Halt();
  computer_.Finish(BatchOutcome{.examples = 16, .metric_sums = {8}, .skipped = true});
  ServePs();
  EXPECT_THAT(pushes_, IsEmpty());
  Resume(8);
  ServePs();
  EXPECT_GT(skips_[7], 0);
  EXPECT_EQ(skips_[7], pushes_[7]);
  EXPECT_THAT(TakeEvents(), ElementsAre("step 70 7"));
}

TEST_F(WorkerSessionTest, HaltsForNobodyElse) {
  StartStep(7, 2);
  Halt(kSessionTimeline + 1);
  FinishStep();
  EXPECT_TRUE(computer_.busy()) << "that was of another timeline";
  Lease(9, 2);
  Halt();
  FinishStep();
  EXPECT_FALSE(computer_.busy());
  LoseCoordinator();
  ServePs();
  EXPECT_TRUE(computer_.busy()) << "nobody is left who would tell it to go on";
  EXPECT_THAT(TakeEvents(), ElementsAre("step 70 7", "step 70 8"));
}

// The coordinator may have claimed the ps anew, and does not mean to stop any more.
TEST_F(WorkerSessionTest, ATimelineThatIsOpenedAgainEndsAHalt) {
  StartStep(7, 2);
  Halt();
  FinishStep();
  EXPECT_FALSE(computer_.busy());
  proto::WorkerOrder order;
  order.mutable_timeline_opened()->set_timeline(kSessionTimeline);
  Order(order);
  ServePs();
  EXPECT_TRUE(computer_.busy()) << "8 is still its own";
}

// Nothing of a timeline that is over is pushed in the next one.
TEST_F(WorkerSessionTest, AnotherTimelineDropsWhatAHaltHeldBack) {
  StartStep(7, 2);
  Halt();
  FinishStep();
  Open(kSessionTimeline + 1);
  ServePs();
  Open(kSessionTimeline + 1);
  ServePs();
  EXPECT_THAT(pushes_, IsEmpty());
}

// Where all are told to leave at once, it leaves no hole below what others have begun.
TEST_F(WorkerSessionTest, DrainsWhenItMayGoOn) {
  StartStep(7, 3);
  Halt();
  session_->Drain("SIGTERM");
  FinishStep();
  EXPECT_FALSE(coordinator().finished().has_value()) << "8 may be needed";
  Resume(9);
  ServePs();
  SendNoLeaseFollows();
  FinishStep();
  EXPECT_THAT(TakeEvents(), ElementsAre("step 70 7", "step 70 8"));
  ExpectLeaving("SIGTERM", false);
  ExpectOver(WorkerSession::End::kDrained);
}

TEST_F(WorkerSessionTest, BeginsNoStepLateInADrain) {
  StartStep(7, 3);
  session_->Drain("SIGTERM");
  loop_.Advance(kDrainTimeout / 2);
  FinishStep();
  EXPECT_THAT(TakeEvents(), ElementsAre("step 70 7"));
  ExpectLeaving("SIGTERM", false);
  ExpectOver(WorkerSession::End::kDrained);
}

TEST_F(WorkerSessionTest, TellsTheNextCoordinatorThatItIsDraining) {
  StartStep(7, 2);
  session_->Drain("SIGTERM");
  ExpectDraining();
  LoseCoordinator();
  Reconnect();
  Welcome();
  ExpectDraining();
}

// What was leased to it before the coordinator heard of the drain is still its own.
TEST_F(WorkerSessionTest, DrainsAfterTheStepsThatAreOnTheWay) {
  GetReady();
  session_->Drain("SIGTERM");
  ExpectDraining();
  EXPECT_FALSE(coordinator().finished().has_value());
  Lease(7, 1);
  ServePs();
  SendNoLeaseFollows();
  EXPECT_FALSE(coordinator().finished().has_value());
  FinishStep();
  EXPECT_THAT(TakeEvents(), ElementsAre("step 70 7"));
  ExpectLeaving("SIGTERM", false);
  ExpectOver(WorkerSession::End::kDrained);
}

TEST_F(WorkerSessionTest, DrainsAtOnceWhenIdle) {
  GetReady();
  session_->Drain("SIGTERM");
  SendNoLeaseFollows();
  ExpectLeaving("SIGTERM", false);
  ExpectOver(WorkerSession::End::kDrained);
}

// The word of the last coordinator says nothing of the next one's leases.
TEST_F(WorkerSessionTest, DrainsAfterTheStepsOfTheNextCoordinatorToo) {
  StartStep(7, 2);
  session_->Drain("SIGTERM");
  SendNoLeaseFollows();
  LoseCoordinator();
  Reconnect();
  Welcome();
  ExpectDraining();
  Open(kSessionTimeline);
  FinishStep();
  FinishStep();
  EXPECT_FALSE(coordinator().finished().has_value());
  SendNoLeaseFollows();
  ExpectLeaving("SIGTERM", false);
  ExpectOver(WorkerSession::End::kDrained);
}

// Else the step would be above the last cut, of ps that have applied it.
TEST_F(WorkerSessionTest, DrainsOnceWhatItHasDoneIsReported) {
  StartStep(7, 1);
  LoseCoordinator();
  session_->Drain("SIGTERM");
  FinishStep();
  EXPECT_THAT(TakeEvents(), ElementsAre("step 70 7"));
  Reconnect();
  Welcome();
  bool reported = false;
  for (const auto& report : TakeReports()) reported = reported || report.has_steps_done();
  EXPECT_TRUE(reported);
  SendNoLeaseFollows();
  ExpectLeaving("SIGTERM", false);
  ExpectOver(WorkerSession::End::kDrained);
}

TEST_F(WorkerSessionTest, DrainsOverTheNextStreamWhileItReopensOne) {
  GetReady();
  SayOutdated();
  session_->Drain("SIGTERM");
  EXPECT_FALSE(end_.has_value()) << "the coordinator would wait for it, and keep a lease for it";
  Lease(7, 1);  // sent before the coordinator has read Reopening
  EndInOrder();
  Welcome();
  ExpectDraining();
  ServePs();
  FinishStep();
  SendNoLeaseFollows();
  ExpectLeaving("SIGTERM", false);
  ExpectOver(WorkerSession::End::kDrained);
}

TEST_F(WorkerSessionTest, DrainsWhenTheStreamThatItReopensIsLost) {
  GetReady();
  SayOutdated();
  session_->Drain("SIGTERM");
  LoseCoordinator();
  ExpectOver(WorkerSession::End::kDrained);
}

TEST_F(WorkerSessionTest, DrainsBeforeItIsWelcome) {
  session_->Drain("SIGTERM");
  Welcome();  // on the way already
  EXPECT_THAT(computer_.TakeCalls(), IsEmpty()) << "nothing is begun any more";
  EXPECT_THAT(TakeEvents(), IsEmpty());
  coordinator().Close(absl::OkStatus());
  loop_.RunUntilIdle();
  ExpectOver(WorkerSession::End::kDrained);
}

TEST_F(WorkerSessionTest, DrainsBetweenTwoTries) {
  LoseCoordinator();
  session_->Drain("SIGTERM");
  ExpectOver(WorkerSession::End::kDrained);
}

TEST_F(WorkerSessionTest, DrainsWhenPrepared) {
  Welcome();
  session_->Drain("SIGTERM");
  computer_.FinishPrepare();
  ExpectLeaving("SIGTERM", false);
  ExpectOver(WorkerSession::End::kDrained);
}

TEST_F(WorkerSessionTest, DrainsWhenTheTimelineOfTheStepAtHandIsLost) {
  StartStep(7);
  session_->Drain("SIGTERM");
  SendNoLeaseFollows();
  computer_.FinishChunks();
  computer_.Finish();
  ExchangePeer::Reject(ps(0), {kSessionTimeline}, 0, "ps 0 is empty");
  loop_.RunUntilIdle();
  ExpectLeaving("SIGTERM", false);
  ExpectOver(WorkerSession::End::kDrained);
}

// Whatever it is doing, and whoever does not answer.
enum class State {
  kJoining,
  kPreparing,
  kIdle,
  kPulling,
  kTraining,
  kPushing,
  kPullingCut,
  kEvaluating
};

class DrainTimeoutTest : public WorkerSessionTest, public testing::WithParamInterface<State> {
 protected:
  void Reach(State state) {
    switch (state) {
      case State::kJoining:
        return;
      case State::kPreparing:
        return Welcome();
      case State::kIdle:
        return GetReady();
      case State::kPulling:
        GetReady();
        return Lease(7, 1);
      case State::kTraining:
        return StartStep(7);
      case State::kPushing:
        StartStep(7);
        computer_.FinishChunks();
        return computer_.Finish();
      case State::kPullingCut:
        GetReady();
        return OrderEvaluation(13, 0);
      case State::kEvaluating:
        held_cut_ = 13;
        GetReady();
        OrderEvaluation(13, 0);
        return ServePs();
    }
  }
};

TEST_P(DrainTimeoutTest, EndsInTime) {
  Reach(GetParam());
  session_->Drain("SIGTERM");
  loop_.Advance(kDrainTimeout);
  ExpectOver(WorkerSession::End::kDrained);
}

TEST_P(DrainTimeoutTest, EndsInTimeWithoutACoordinator) {
  Reach(GetParam());
  LoseCoordinator();
  session_->Drain("SIGTERM");
  loop_.Advance(kDrainTimeout);
  ExpectOver(WorkerSession::End::kDrained);
}

INSTANTIATE_TEST_SUITE_P(WorkerSession, DrainTimeoutTest,
                         testing::Values(State::kJoining, State::kPreparing, State::kIdle,
                                         State::kPulling, State::kTraining, State::kPushing,
                                         State::kPullingCut, State::kEvaluating));

TEST_F(WorkerSessionTest, AStepThatEndsLateLeavesNoMoreTimeToTheCoordinator) {
  StartStep(7);
  session_->Drain("SIGTERM");
  loop_.Advance(kDrainTimeout - milliseconds(200));
  FinishStep();
  loop_.Advance(milliseconds(200));
  ExpectOver(WorkerSession::End::kDrained);
}

}  // namespace
}  // namespace shoal
