#include "worker/session/worker_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/crc32c.h"
#include "common/job/job.h"
#include "common/log/logging.h"
#include "tests/worker/session/worker_session_fixture.h"
#include "worker/job/data_error.h"

namespace shoal {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Le;
using testing::Not;
using testing::SizeIs;

// --- From the hello to the first step ------------------------------------------------------------

TEST_F(WorkerSessionTest, SaysHelloPreparesAndIsReady) {
  auto reports = TakeReports();
  ASSERT_EQ(reports.size(), 1u);
  const proto::WorkerHello& hello = reports[0].hello();
  EXPECT_EQ(coordinator().method(), kWorkMethod);
  EXPECT_EQ(hello.version(), kVersion);
  EXPECT_EQ(hello.index(), 4u);
  EXPECT_EQ(hello.host(), "node");
  EXPECT_EQ(hello.pid(), 12u);
  EXPECT_EQ(hello.incarnation(), 99u);
  EXPECT_EQ(hello.timeline(), 0u);
  EXPECT_THAT(hello.held_steps(), IsEmpty());
  Welcome();
  EXPECT_THAT(TakeEvents(), ElementsAre("index 4"));
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("prepare the job 2"));
  EXPECT_THAT(TakeReports(), IsEmpty());
  computer_.FinishPrepare();
  reports = TakeReports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].ready().training_examples(), 200u);
  EXPECT_EQ(reports[0].ready().test_examples(), 50u);
  EXPECT_EQ(reports[0].ready().shard_map_fingerprint(), model_.shard_map.Fingerprint());
  EXPECT_EQ(reports[0].ready().job_fingerprint(), JobFingerprint("the job"));
}

// Before the streams to the ps are opened, which it is for.
TEST_F(WorkerSessionTest, LendsTheMemoryOfItsGradients) {
  computer_.gradients_memory = SharedMemory::Create(4096);
  std::vector<std::shared_ptr<const SharedMemory>> lent;
  network_.on_open = [&](FarEnd& far) {
    if (far.method() == kExchangeMethod) lent.push_back(network_.lent());
  };
  GetReady();
  EXPECT_THAT(lent, ElementsAre(computer_.gradients_memory, computer_.gradients_memory));
}

TEST_F(WorkerSessionTest, LeasePullTrainReport) {
  GetReady();
  Lease(7, 2);
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("prefetch 7 2"))
      << "its batches are read meanwhile";
  ServePs();
  EXPECT_GT(pulls_, 0u);
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("train 7"));
  computer_.FinishChunks();
  ServePs();
  EXPECT_THAT(TakeReports(), IsEmpty()) << "it is not computed completely";
  loop_.Advance(milliseconds(2));
  computer_.Finish();
  const auto reports = TakeReports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].steps_done().timeline(), kSessionTimeline);
  ASSERT_EQ(reports[0].steps_done().steps_size(), 1);
  const proto::StepDone& done = reports[0].steps_done().steps(0);
  EXPECT_EQ(done.step(), 7u);
  EXPECT_EQ(done.examples(), 16u);
  EXPECT_DOUBLE_EQ(done.loss_sum(), 32);
  EXPECT_THAT(done.metric_sums(), ElementsAre(8));
  EXPECT_EQ(done.input_wait_us(), 3u);
  EXPECT_EQ(done.compute_us(), 5u);
  EXPECT_EQ(done.exchange_us(), 2000u - 8u);
  EXPECT_THAT(TakeEvents(), ElementsAre("step 70 7"));
  // The next one at once: the answers to the pushes have brought its parameters.
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("train 8"));
  const uint64_t pulls = pulls_;
  FinishStep();
  EXPECT_EQ(pulls_, pulls);
  EXPECT_THAT(TakeReports(), SizeIs(1));
}

TEST_F(WorkerSessionTest, WhereTheStrategyWantsItParametersArePulledForEachStep) {
  computer_.pulls_below = kTotalSteps;
  StartStep(7, 2);
  const uint64_t pulls = pulls_;
  computer_.FinishChunks();
  computer_.Finish();
  loop_.RunUntilIdle();
  EXPECT_THAT(computer_.TakeCalls(), IsEmpty());
  ServePs();
  EXPECT_GT(pulls_, pulls);
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("train 8"));
  FinishStep();
  EXPECT_THAT(TakeEvents(), ElementsAre("step 70 7", "step 70 8"));
}

// As while a job warms up: the answers to the pushes of the first step that is not one of these
// bring the values.
TEST_F(WorkerSessionTest, ParametersArePulledForStepsBelowPullsBelow) {
  computer_.pulls_below = 8;
  StartStep(7, 3);
  uint64_t pulls = pulls_;
  FinishStep();
  EXPECT_GT(pulls_, pulls) << "for step 8: the pushes of step 7 brought nothing";
  pulls = pulls_;
  FinishStep();
  EXPECT_EQ(pulls_, pulls);
  FinishStep();
  EXPECT_THAT(TakeEvents(), ElementsAre("step 70 7", "step 70 8", "step 70 9"));
}

// A quarter of what it holds at once, or what there is after a while.
// Nothing of it was pushed while it was computed; it is closed all the same, on every ps, and its
// examples count.
TEST_F(WorkerSessionTest, AStepThatIsSkippedIsPushedAsThatToAllChunks) {
  StartStep(7, 2);
  TakeReports();
  computer_.Finish(
      BatchOutcome{.examples = 16, .loss_sum = 32, .metric_sums = {8}, .skipped = true});
  ServePs();
  int chunks = 0;
  for (int i = 0; i < 2; ++i) {
    for (const Chunk& chunk : model_.chunks(i)) chunks += chunk.pushed() ? 1 : 0;
  }
  EXPECT_EQ(pushes_[7], chunks);
  EXPECT_EQ(skips_[7], chunks);
  EXPECT_THAT(TakeEvents(), ElementsAre("step 70 7"));
  const auto reports = TakeReports();
  ASSERT_THAT(reports, SizeIs(1));
  ASSERT_THAT(reports[0].steps_done().steps(), SizeIs(1));
  EXPECT_EQ(reports[0].steps_done().steps(0).step(), 7u);
  EXPECT_EQ(reports[0].steps_done().steps(0).examples(), 16u);
  EXPECT_EQ(computer_.TakeCalls().back(), "train 8");
  FinishStep();
  EXPECT_EQ(pushes_[8], chunks);
  EXPECT_EQ(skips_[8], 0) << "the next one has a gradient";
}

TEST_F(WorkerSessionTest, ReportsShortStepsTogether) {
  StartStep(0, 20);
  for (int step = 0; step < 4; ++step) FinishStep();
  EXPECT_THAT(TakeReports(), IsEmpty());
  FinishStep();
  const auto together = TakeReports();
  ASSERT_THAT(together, SizeIs(1));
  EXPECT_EQ(together[0].steps_done().steps_size(), 5);
  FinishStep();
  EXPECT_THAT(TakeReports(), IsEmpty());
  loop_.Advance(milliseconds(50));
  const auto late = TakeReports();
  ASSERT_THAT(late, SizeIs(1));
  EXPECT_EQ(late[0].steps_done().steps_size(), 1);
  for (int step = 6; step < 20; ++step) FinishStep();
  int rest = 0;
  for (const proto::WorkerReport& report : TakeReports()) rest += report.steps_done().steps_size();
  EXPECT_EQ(rest, 14) << "none is kept when there is nothing more to do";
  EXPECT_THAT(TakeEvents(), SizeIs(20));
}

TEST_F(WorkerSessionTest, ReportsWhatItHasDoneBeforeItLeaves) {
  StartStep(0, 20);
  FinishStep();
  computer_.Finish(absl::DataLossError("example 3"));
  const auto reports = TakeReports();
  ASSERT_THAT(reports, SizeIs(2));
  EXPECT_EQ(reports[0].steps_done().steps_size(), 1);
  EXPECT_TRUE(reports[1].has_leaving());
}

// The names of data files can be any bytes. A report that is not UTF-8 cannot be read.
TEST_F(WorkerSessionTest, AFileWhoseNameIsNotUtf8IsNamedInItsReason) {
  StartStep(0, 20);
  computer_.Finish(absl::DataLossError("a\xff.png: damaged"));
  ExpectLeaving("a\\xff.png", true);
}

TEST_F(WorkerSessionTest, TheComputerIsToldOfAnswersToPushes) {
  StartStep(7);
  computer_.FinishChunks();
  EXPECT_EQ(computer_.arrived, 0);
  ServePs();
  EXPECT_GT(computer_.arrived, 2);
}

TEST_F(WorkerSessionTest, LeasesOfAnotherTimelineOrWithoutSenseAreDropped) {
  GetReady();
  timeline_ = kSessionTimeline + 1;
  Lease(7, 2);
  OrderEvaluation(5, 0);
  timeline_ = kSessionTimeline;
  Lease(7, UINT64_MAX);
  Order(proto::WorkerOrder());
  ServePs();
  EXPECT_THAT(computer_.TakeCalls(), IsEmpty());
}

TEST_F(WorkerSessionTest, AStepThatCannotBeComputedMakesItLeave) {
  StartStep(7);
  computer_.Finish(absl::DataLossError("train-images.idx ends after 12 of 60000 images"));
  ExpectLeaving("train-images.idx ends after 12", /*failed=*/true);
  ExpectOver(WorkerSession::End::kFailed, "train-images.idx ends after 12");
}

TEST_F(WorkerSessionTest, AnErrorOfDataQuotesNothingToAnUnknownCoordinator) {
  Welcome();
  const absl::Status error = DataError(absl::DataLossError("/etc/shadow: line 1: \"root\""));
  computer_.FinishPrepare(error);
  ExpectLeaving(TextForCoordinator(error, /*may_quote=*/false), true);
  ExpectOver(WorkerSession::End::kFailed, "root");  // the worker's own log
}

TEST_F(WorkerSessionTest, WithoutItsDataItLeavesWithTheReason) {
  Welcome();
  computer_.FinishPrepare(absl::NotFoundError("no such file: /data/train-images.idx"));
  ExpectLeaving("no such file: /data/train-images.idx", true);
  ExpectOver(WorkerSession::End::kFailed, "no such file: /data/train-images.idx");
}

TEST_F(WorkerSessionTest, APsOfAnotherVersionMakesItLeave) {
  GetReady();
  ps(1).Close(absl::FailedPreconditionError("worker 4 is Shoal 1, this process is Shoal 2"));
  loop_.RunUntilIdle();
  ExpectLeaving("this process is Shoal 2", true);
  ExpectOver(WorkerSession::End::kFailed, "this process is Shoal 2");
}

// --- Without a coordinator -----------------------------------------------------------------------

TEST_F(WorkerSessionTest, WorksOnWithoutACoordinatorAndReportsLater) {
  StartStep(7, 2);
  LoseCoordinator();
  FinishStep();
  EXPECT_THAT(TakeEvents(), ElementsAre("step 70 7"));
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("train 8"));
  Reconnect();
  auto reports = TakeReports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].hello().timeline(), kSessionTimeline);
  EXPECT_THAT(reports[0].hello().held_steps(), ElementsAre(8));
  Lease(30, 1);
  Welcome();
  reports = TakeReports();
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_TRUE(reports[0].has_ready());
  EXPECT_EQ(reports[1].steps_done().timeline(), kSessionTimeline);
  ASSERT_EQ(reports[1].steps_done().steps_size(), 1);
  EXPECT_EQ(reports[1].steps_done().steps(0).step(), 7u);
  FinishStep();
  reports = TakeReports();
  ASSERT_EQ(reports.size(), 1u) << "each once";
  EXPECT_EQ(reports[0].steps_done().steps(0).step(), 8u);
}

// --- New certificates ----------------------------------------------------------------------------

TEST_F(WorkerSessionTest, KeepsItsStepsWhenItReopensTheStream) {
  StartStep(7, 6);
  FinishStep();
  SayOutdated();
  auto reports = TakeReports();
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].steps_done().steps(0).step(), 7u) << "no report waits for the next stream";
  EXPECT_TRUE(reports[1].has_reopening());
  Lease(13, 1);  // sent before the coordinator has read that
  FinishStep();
  EXPECT_THAT(TakeReports(), IsEmpty());
  EXPECT_THAT(computer_.TakeCalls(), testing::Contains("train 9")) << "it works on";
  EndInOrder();
  reports = TakeReports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].hello().timeline(), kSessionTimeline);
  EXPECT_THAT(reports[0].hello().held_steps(), testing::UnorderedElementsAre(8, 9, 10, 11, 12, 13));
  Welcome();
  reports = TakeReports();
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_TRUE(reports[0].has_ready());
  EXPECT_EQ(reports[1].steps_done().steps(0).step(), 8u);
  FinishStep();
  EXPECT_THAT(TakeEvents(), ElementsAre("step 70 7", "step 70 8", "step 70 9"));
}

// The coordinator has sent the Halt before it read Reopening.
TEST_F(WorkerSessionTest, KeepsItsReportsInAHaltWhileItReopensTheStream) {
  StartStep(7, 2);
  SayOutdated();
  FinishStep();
  Halt();
  TakeReports();
  EndInOrder();
  auto reports = TakeReports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_THAT(reports[0].hello().held_steps(), testing::UnorderedElementsAre(7, 8));
  Welcome();
  reports = TakeReports();
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_TRUE(reports[0].has_ready());
  ASSERT_EQ(reports[1].steps_done().steps_size(), 1);
  EXPECT_EQ(reports[1].steps_done().steps(0).step(), 7u);
}

TEST_F(WorkerSessionTest, DoesNotReopenTheStreamWhereOrdersWouldBeLost) {
  StartStep(7, 2);
  Halt();
  SayOutdated();
  EXPECT_FALSE(coordinator().finished().has_value()) << "a Resume may come";
  Resume(100);
  OrderEvaluation(5, 0);
  SayOutdated();
  EXPECT_FALSE(coordinator().finished().has_value()) << "it would evaluate the batch in vain";
  session_->Drain("SIGTERM");
  SayOutdated();
  EXPECT_FALSE(coordinator().finished().has_value()) << "it leaves soon";
}

TEST_F(WorkerSessionTest, ARejectionThatIsNotFinalMeansAnotherStream) {
  StartStep(7);
  proto::WorkerOrder order;
  order.mutable_rejected()->set_reason("reported nothing for 60 s");
  Order(order);
  FinishStep();
  EXPECT_THAT(TakeReports(), IsEmpty()) << "nobody listens any more";
  coordinator().Close(absl::OkStatus());
  Reconnect();
  TakeReports();
  Welcome();
  const auto reports = TakeReports();
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[1].steps_done().steps(0).step(), 7u);
}

// A coordinator that rejects ends the stream in order, which says nothing.
TEST_F(WorkerSessionTest, TheReasonOfARejectionIsLoggedOnceAPeriod) {
  std::vector<std::string> log;
  SendLogTo([&log](const std::string& message, const LogFields&) { log.push_back(message); });
  const Time alone = loop_.Now();
  while (!end_.has_value() && loop_.Now() < alone + minutes(20)) {
    loop_.Advance(milliseconds(100));
    if (!coordinator().open()) continue;
    proto::WorkerOrder order;
    order.mutable_rejected()->set_reason("there is a worker 4 already");
    Order(order);
    if (coordinator().open()) coordinator().Close(absl::OkStatus());
    loop_.RunUntilIdle();
  }
  SendLogTo({});
  ExpectOver(WorkerSession::End::kNoCoordinator, "chief:1 for 60");
  EXPECT_THAT(why_, HasSubstr(" s: there is a worker 4 already"));
  EXPECT_THAT(log, Contains(HasSubstr("already")).Times(AllOf(Ge(119), Le(122))))
      << "every 5 s of 600, and at first";
  EXPECT_THAT(log, Not(Contains(HasSubstr("no answer"))));
}

TEST_F(WorkerSessionTest, ARejectionIsForgottenOnceItNoLongerHolds) {
  std::vector<std::string> log;
  SendLogTo([&log](const std::string& message, const LogFields&) { log.push_back(message); });
  proto::WorkerOrder order;
  order.mutable_rejected()->set_reason("there is a worker 4 already");
  Order(order);
  coordinator().Close(absl::OkStatus());
  Reconnect();
  coordinator().Close(absl::UnavailableError("connection refused"));
  loop_.Advance(seconds(6));
  EXPECT_THAT(log, Contains(HasSubstr("chief:1 for 5 s: connection refused")));
  Order(order);
  coordinator().Close(absl::OkStatus());
  Reconnect();
  Welcome();
  LoseCoordinator();
  SendLogTo({});
  EXPECT_THAT(log.back(), AllOf(HasSubstr("lost "), Not(HasSubstr("already"))));
}

TEST_F(WorkerSessionTest, SaysOnceThatTheCoordinatorIsBack) {
  std::vector<std::string> log;
  SendLogTo([&log](const std::string& message, const LogFields&) { log.push_back(message); });
  Welcome();
  EXPECT_THAT(log, Not(Contains(HasSubstr("back with"))));
  LoseCoordinator();
  loop_.Advance(seconds(3));
  Welcome();
  SendLogTo({});
  EXPECT_THAT(log, Contains(HasSubstr("chief:1 after 3 s")).Times(1));
}

TEST_F(WorkerSessionTest, ALateReportIsForgottenWithItsTimeline) {
  StartStep(7);
  LoseCoordinator();
  FinishStep();
  Reconnect();
  TakeReports();
  proto::WorkerOrder order;
  order.mutable_timeline_opened()->set_timeline(kSessionTimeline + 1);
  Order(order);
  Welcome();
  const auto reports = TakeReports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_TRUE(reports[0].has_ready());
}

TEST_F(WorkerSessionTest, LosesTheCoordinatorWhilePreparing) {
  Welcome();
  LoseCoordinator();
  computer_.FinishPrepare();
  Reconnect();
  TakeReports();
  computer_.TakeCalls();
  Welcome();
  EXPECT_THAT(computer_.TakeCalls(), IsEmpty()) << "once is enough";
  const auto reports = TakeReports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_TRUE(reports[0].has_ready());
}

TEST_F(WorkerSessionTest, IsReadyOnceWhereTheStreamWasLostWhilePreparing) {
  Welcome();
  LoseCoordinator();
  Reconnect();
  TakeReports();
  Welcome();
  EXPECT_THAT(TakeReports(), IsEmpty());
  computer_.FinishPrepare();
  EXPECT_THAT(TakeReports(), SizeIs(1));
}

TEST_F(WorkerSessionTest, WithoutACoordinatorForTenMinutesItEnds) {
  GetReady();
  LoseCoordinator();
  const Time alone = loop_.Now();
  while (!end_.has_value() && loop_.Now() < alone + minutes(20)) {
    loop_.Advance(milliseconds(100));
    if (coordinator().open()) coordinator().Close(absl::UnavailableError("refused"));
  }
  EXPECT_GE(loop_.Now() - alone, minutes(10));
  EXPECT_LE(loop_.Now() - alone, minutes(10) + seconds(3));
  ExpectOver(WorkerSession::End::kNoCoordinator, "chief:1 for 60");
}

TEST_F(WorkerSessionTest, OtherPsMeanAnotherStart) {
  GetReady();
  LoseCoordinator();
  Reconnect();
  Welcome(4, {"ps-0:1"});
  ExpectOver(WorkerSession::End::kNoCoordinator, "other ps");
}

TEST_F(WorkerSessionTest, AnotherJobMeansAnotherStart) {
  GetReady();
  LoseCoordinator();
  Reconnect();
  TakeReports();
  Welcome(4, {"ps-0:1", "ps-1:1"}, "the job, with more epochs");
  EXPECT_THAT(TakeReports(), IsEmpty()) << "it is not ready for that job";
  ExpectOver(WorkerSession::End::kNoCoordinator,
             ChecksumText(JobFingerprint("the job, with more epochs")));
}

TEST_F(WorkerSessionTest, AnotherJobWhilePreparingMeansAnotherStart) {
  Welcome();
  LoseCoordinator();
  Reconnect();
  Welcome(4, {"ps-0:1", "ps-1:1"}, "another job");
  ExpectOver(WorkerSession::End::kNoCoordinator);
}

TEST_F(WorkerSessionTest, ADrainingWorkerIsDrainedWhereTheJobIsAnother) {
  StartStep(3);
  session_->Drain("SIGTERM");
  LoseCoordinator();
  Reconnect();
  Welcome(4, {"ps-0:1", "ps-1:1"}, "another job");
  ExpectOver(WorkerSession::End::kDrained);
}

TEST_F(WorkerSessionTest, RejectedForItsJobItIsWorthARestart) {
  GetReady();
  proto::WorkerOrder order;
  order.mutable_rejected()->set_reason("computes another job");
  order.mutable_rejected()->set_other_job(true);
  Order(order);
  ExpectOver(WorkerSession::End::kNoCoordinator, "computes another job");
}

TEST_F(WorkerSessionTest, APsOfAnotherJobMeansAnotherStart) {
  GetReady();
  Lease(0, 1);
  ps(1).Close(absl::AbortedError("ps 1 has another job"));
  loop_.RunUntilIdle();
  ExpectOver(WorkerSession::End::kNoCoordinator, "ps 1 has another job");
}

class UnlistedWorkerSessionTest : public WorkerSessionTest {
 protected:
  UnlistedWorkerSessionTest() : WorkerSessionTest(std::nullopt) {}
};

// The index in a hello is that of the cluster spec; a later coordinator does not know the one that
// a former one gave.
TEST_F(UnlistedWorkerSessionTest, TakesTheIndexThatItIsGiven) {
  EXPECT_FALSE(TakeReports()[0].hello().has_index());
  Welcome(5);
  EXPECT_THAT(TakeEvents(), ElementsAre("index 5"));
  computer_.FinishPrepare();
  for (const uint32_t index : {5, 6}) {
    LoseCoordinator();
    Reconnect();
    EXPECT_FALSE(TakeReports()[0].hello().has_index());
    Welcome(index);
  }
  EXPECT_THAT(TakeEvents(), ElementsAre("index 6"));
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(ps(i).Take<proto::ExchangeRequest>().back().hello().worker(), 6u);
  EXPECT_FALSE(end_.has_value());
}

// --- The end -------------------------------------------------------------------------------------

TEST_F(WorkerSessionTest, TheJobIsDone) {
  GetReady();
  proto::WorkerOrder order;
  order.mutable_job_done();
  Order(order);
  ExpectOver(WorkerSession::End::kJobDone);
}

// Though it holds steps, which no ps would take any more.
TEST_F(WorkerSessionTest, AJobThatHasFailedIsOverAtOnce) {
  GetReady();
  Lease(0, 2);
  session_->Drain("SIGTERM");
  EXPECT_FALSE(end_.has_value());
  testing::internal::CaptureStderr();
  proto::WorkerOrder order;
  order.mutable_job_done()->set_failure("the losses of 100 steps in a row were not finite");
  Order(order);
  FlushLog(std::chrono::minutes(1));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("the losses of 100 steps in a row"));
  ExpectOver(WorkerSession::End::kJobDone);
}

TEST_F(WorkerSessionTest, ARejectionIsTheEndWhenItIsFinal) {
  proto::WorkerOrder order;
  order.mutable_rejected()->set_reason("worker 4 is not in the cluster spec");
  Order(order);
  EXPECT_FALSE(end_.has_value());
  order.mutable_rejected()->set_final(true);
  Order(order);
  ExpectOver(WorkerSession::End::kFailed, "worker 4 is not in the cluster spec");
}

TEST_F(WorkerSessionTest, ACoordinatorOfAnotherLanguageIsTheEnd) {
  coordinator().SendGarbage();
  loop_.RunUntilIdle();
  ExpectOver(WorkerSession::End::kFailed, "the coordinator at chief:1 ");
}

TEST_F(WorkerSessionTest, MayBeDestroyedWhileTheComputerIsBusy) {
  StartStep(7);
  session_.reset();
  computer_.FinishChunks();
  computer_.Finish();
  loop_.Advance(minutes(1));
  EXPECT_FALSE(end_.has_value());
}

}  // namespace
}  // namespace shoal
