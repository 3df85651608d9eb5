#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/session/worker_session_fixture.h"
#include "worker/session/worker_session.h"

namespace shoal {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

// --- The end of a timeline -----------------------------------------------------------------------

TEST_F(WorkerSessionTest, ANewTimelineWhileComputingDropsEverything) {
  StartStep(7, 3);
  const int pushes_before = pushes_[7];
  proto::WorkerOrder order;
  order.mutable_timeline_opened()->set_timeline(kSessionTimeline + 1);
  Order(order);
  timeline_ = kSessionTimeline + 1;
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("cancel all"));
  Lease(5, 1);
  ServePs();
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("prefetch 5 1")) << "the computer is still busy";
  computer_.FinishChunks();
  ServePs();
  EXPECT_EQ(pushes_[7], pushes_before) << "a gradient of the old timeline goes nowhere";
  computer_.Finish();
  ServePs();
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("train 5"));
  FinishStep();
  const auto reports = TakeReports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].steps_done().timeline(), kSessionTimeline + 1);
  EXPECT_EQ(reports[0].steps_done().steps(0).step(), 5u);
  EXPECT_THAT(TakeEvents(), ElementsAre("step 71 5"));
}

TEST_F(WorkerSessionTest, ARejectionDropsEverythingAndIsReported) {
  StartStep(7, 3);
  computer_.FinishChunks();
  ExchangePeer::Reject(ps(0), {kSessionTimeline}, 0, "ps 0 is empty");
  const auto reports = TakeReports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].timeline_lost().timeline(), kSessionTimeline);
  computer_.Finish();
  ServePs();
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("cancel all"))
      << "there is nothing to do until another is open";
  EXPECT_THAT(TakeEvents(), IsEmpty());
  Open(kSessionTimeline + 1);
  Lease(2, 1);
  const uint64_t pulls = pulls_;
  ServePs();
  EXPECT_GT(pulls_, pulls) << "of another timeline, nothing is known";
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("cancel all", "prefetch 2 1", "train 2"));
}

// The coordinator opens the same timeline again for a worker that was misled.
TEST_F(WorkerSessionTest, TheSameTimelineMayBeOpenedAgain) {
  StartStep(7, 3);
  ExchangePeer::Reject(ps(0), {kSessionTimeline}, 0, "an answer from before");
  loop_.RunUntilIdle();
  Open(kSessionTimeline);
  Lease(9, 1);
  ServePs();
  computer_.TakeCalls();
  computer_.FinishChunks();
  computer_.Finish();  // step 7, which was dropped
  ServePs();
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("train 9"));
  EXPECT_EQ(pushes_[7], 0);
  FinishStep();
  EXPECT_THAT(TakeEvents(), ElementsAre("step 70 9"));
}

TEST_F(WorkerSessionTest, TheTimelineItIsInOpenedAgainChangesNothing) {
  StartStep(7, 2);
  Open(kSessionTimeline);
  EXPECT_THAT(computer_.TakeCalls(), IsEmpty());
  FinishStep();
  EXPECT_THAT(TakeEvents(), ElementsAre("step 70 7"));
}

TEST_F(WorkerSessionTest, ATimelineLostWhilePulling) {
  GetReady();
  Lease(7, 1);
  ExchangePeer::Reject(ps(1), {kSessionTimeline}, 0, "ps 1 is empty");
  loop_.RunUntilIdle();
  ServePs();  // answers to the pull, too late
  EXPECT_THAT(computer_.TakeCalls(), Not(Contains("train 7")));
  Open(kSessionTimeline + 1);
  Lease(3, 1);
  ServePs();
  EXPECT_THAT(computer_.TakeCalls(), Contains("train 3"));
}

// --- Evaluation ----------------------------------------------------------------------------------

TEST_F(WorkerSessionTest, EvaluatesBeforeItTrainsOn) {
  held_cut_ = 13;
  StartStep(20, 2);
  OrderEvaluation(13, 2);
  OrderEvaluation(13, 3);
  ServePs();
  EXPECT_THAT(computer_.TakeCalls(), IsEmpty()) << "the step at hand first";
  EXPECT_THAT(computer_.expected_evaluations, ElementsAre(2, 3)) << "read meanwhile";
  const uint64_t pulls = pulls_;
  FinishStep();
  TakeReports();
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("evaluate 2"));
  EXPECT_GT(pulls_, pulls);
  const uint64_t with_cut = pulls_;
  computer_.Finish();
  ServePs();
  auto reports = TakeReports();
  ASSERT_EQ(reports.size(), 1u);
  const proto::EvaluationDone& done = reports[0].evaluation_done();
  EXPECT_EQ(done.timeline(), kSessionTimeline);
  EXPECT_EQ(done.cut_step(), 13u);
  EXPECT_EQ(done.batch(), 2u);
  EXPECT_EQ(done.examples(), 16u);
  EXPECT_DOUBLE_EQ(done.loss_sum(), 32);
  EXPECT_THAT(done.metric_sums(), ElementsAre(8));
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("evaluate 3"));
  EXPECT_EQ(pulls_, with_cut) << "the cut is here already";
  computer_.Finish();
  ServePs();
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("train 21"));
  EXPECT_EQ(pulls_, with_cut) << "nor are the live parameters lost";
}

TEST_F(WorkerSessionTest, AnEvaluationThatTheCoordinatorCancelsIsDropped) {
  held_cut_ = 26;
  GetReady();
  OrderEvaluation(13, 0);
  OrderEvaluation(13, 1);
  OrderEvaluation(26, 4);
  ServePs();
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("evaluate 4"));
  EXPECT_THAT(computer_.expected_evaluations, ElementsAre(4)) << "nobody takes the others";
  EXPECT_THAT(TakeReports(), IsEmpty());
}

TEST_F(WorkerSessionTest, ATimelineLostWhilePullingACut) {
  held_cut_ = 13;
  GetReady();
  OrderEvaluation(13, 0);
  Lease(20, 1);
  ExchangePeer::Reject(ps(0), {kSessionTimeline}, 0, "ps 0 is empty");
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeReports(),
              ElementsAre(testing::Property(&proto::WorkerReport::has_timeline_lost, true)));
  EXPECT_THAT(computer_.expected_evaluations, IsEmpty());
  for (int i = 0; i < 2; ++i) {
    for (const proto::ExchangeRequest& request : ps(i).Take<proto::ExchangeRequest>()) {
      EXPECT_NE(request.pull().timeline(), 0u) << "nothing is asked for in no timeline";
    }
  }
  computer_.TakeCalls();
  Open(kSessionTimeline + 1);
  Lease(3, 1);
  ServePs();
  EXPECT_THAT(computer_.TakeCalls(), Contains("train 3"));
}

TEST_F(WorkerSessionTest, ABatchThatCannotBeEvaluatedMakesItLeave) {
  held_cut_ = 13;
  GetReady();
  OrderEvaluation(13, 0);
  ServePs();
  computer_.Finish(absl::DataLossError("test-images.idx is damaged"));
  ExpectLeaving("test-images.idx is damaged", true);
  ExpectOver(WorkerSession::End::kFailed, "test-images.idx is damaged");
}

}  // namespace
}  // namespace shoal
