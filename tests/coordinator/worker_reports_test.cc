// WorkerReports::OnReport and OnGone.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/coordinator/worker_reports_fixture.h"

namespace shoal {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(WorkerReportsTest, ADoneStepCountsOnce) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  const Worker& worker = Ready(0);
  parts_->reported.clear();
  TakeCauses();
  Lease(worker, 2);
  Report(0, {Done(0)});
  Report(0, {Done(0), Done(1)});
  EXPECT_EQ(parts_->scheduler->steps().base(), 2u);
  EXPECT_EQ(parts_->counters.steps_done, 2u);
  EXPECT_EQ(parts_->counters.examples, 32u);
  EXPECT_EQ(parts_->membership->records().at(0).steps_done, 2u);
  EXPECT_THAT(parts_->reported, ElementsAre(worker.key));
  EXPECT_THAT(TakeCauses(), ElementsAre(Cause::kReports, Cause::kReports));
}

TEST_F(WorkerReportsTest, AReportOfAnotherTimelineCountsForNothing) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  Ready(0);
  parts_->reported.clear();
  proto::WorkerReport report;
  report.mutable_steps_done()->set_timeline(parts_->timeline() + 1);
  *report.mutable_steps_done()->add_steps() = Done(0);
  workers_.Send(0, report);
  EXPECT_EQ(parts_->counters.steps_done, 0u);
  EXPECT_THAT(parts_->reported, IsEmpty());
}

TEST_F(WorkerReportsTest, AReportThatNoWorkerOfTheJobSendsIsRejected) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  Ready(0);
  proto::StepDone wrong = Done(0);
  wrong.set_examples(wrong.examples() + 1);
  Report(0, {wrong});
  EXPECT_TRUE(Rejected(0));
  EXPECT_EQ(workers_.Find(0), nullptr);
  EXPECT_EQ(parts_->counters.steps_done, 0u);
}

TEST_F(WorkerReportsTest, AStepThatWasUndoneAddsItsSumsOnlyOnce) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  Ready(0);
  parts_->counted = {0};
  Report(0, {Done(0)});
  EXPECT_EQ(parts_->counters.steps_done, 1u);
  EXPECT_EQ(parts_->counters.examples, 0u);
  EXPECT_THAT(parts_->counted, IsEmpty());
}

TEST_F(WorkerReportsTest, AStepThatThePsHadAlreadyHasNoResults) {
  Job job = MakeJob();
  job.strategy.name = "sync";
  job.strategy.gradients_per_update = 4;
  ASSERT_NO_FATAL_FAILURE(Begin(std::move(job)));
  Ready(0);
  proto::StepDone already_applied;
  already_applied.set_step(0);
  already_applied.set_already_applied(true);
  Report(0, {already_applied});
  EXPECT_EQ(parts_->counters.steps_done, 1u);
  EXPECT_EQ(parts_->counters.examples, 0u);
  EXPECT_EQ(parts_->membership->records().at(0).steps_done, 0u);
}

TEST_F(WorkerReportsTest, TooManyLossesThatAreNotFiniteFailTheRun) {
  Job job = MakeJob();
  job.stop_after_nan_steps = 2;
  ASSERT_NO_FATAL_FAILURE(Begin(std::move(job)));
  Ready(0);
  proto::StepDone first = Done(0), second = Done(1);
  first.set_loss_sum(NAN);
  second.set_loss_sum(NAN);
  Report(0, {first});
  EXPECT_TRUE(parts_->working());
  TakeCauses();
  Report(0, {second});
  EXPECT_FALSE(parts_->working());
  ASSERT_TRUE(parts_->failure.has_value());
  EXPECT_TRUE(absl::IsDataLoss(parts_->failure->status));
  EXPECT_TRUE(parts_->failure->ends_ps);
  EXPECT_TRUE(parts_->shutdown->working()) << "the next turn ends the run";
  EXPECT_THAT(TakeCauses(), ElementsAre(Cause::kFacts));
}

TEST_F(WorkerReportsTest, ALeavingWorkerHandsItsStepsBack) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  const Worker& worker = Ready(0);
  Lease(worker, 2);
  TakeCauses();
  proto::WorkerReport report;
  report.mutable_leaving()->set_reason("SIGTERM");
  workers_.Send(0, report);
  EXPECT_FALSE(worker.ready);
  EXPECT_EQ(StateOf(0), State::kLeft);
  EXPECT_EQ(parts_->membership->records().at(0).detail, "SIGTERM");
  EXPECT_EQ(parts_->scheduler->steps().held(worker.key), 0u);
  EXPECT_THAT(TakeCauses(), ElementsAre(Cause::kFacts));
}

TEST_F(WorkerReportsTest, ADrainingWorkerKeepsItsStepsButNoBatches) {
  Job job = MakeJob({.checkpoint = "{}"});
  ASSERT_NO_FATAL_FAILURE(Begin(std::move(job)));
  workers_.Connect(0);
  workers_.SendHello(0);
  SendReady(0, {.test = kTestExamples});
  const Worker& worker = *workers_.Find(0);
  Lease(worker, 2);
  Evaluate(worker);
  workers_.Orders(0);
  TakeCauses();
  proto::WorkerReport report;
  report.mutable_draining();
  workers_.Send(0, report);
  EXPECT_FALSE(worker.ready);
  EXPECT_EQ(StateOf(0), State::kDraining);
  EXPECT_EQ(parts_->scheduler->steps().held(worker.key), 2u);
  EXPECT_EQ(parts_->scheduler->evaluation()->batches().held(worker.key), 0u);
  const auto orders = workers_.Orders(0);
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_TRUE(orders[0].has_drain());
  EXPECT_THAT(TakeCauses(), ElementsAre(Cause::kFacts));
}

TEST_F(WorkerReportsTest, AWaitingWorkerIsRememberedUntilItReports) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  const Worker& worker = Ready(0);
  proto::WorkerReport report;
  report.mutable_waiting()->set_computing(true);
  workers_.Send(0, report);
  EXPECT_TRUE(worker.Computing(loop_.Now()));
  EXPECT_EQ(worker.waiting_at, loop_.Now());
  Report(0, {Done(0)});
  EXPECT_FALSE(worker.Computing(loop_.Now()));
}

TEST_F(WorkerReportsTest, AnAnswerToNoHaltChangesNothing) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  Ready(0);
  TakeCauses();
  proto::WorkerReport report;
  report.mutable_halted()->set_timeline(parts_->timeline());
  workers_.Send(0, report);
  EXPECT_THAT(TakeCauses(), IsEmpty());
}

TEST_F(WorkerReportsTest, AWorkerThatLostTheOpenTimelineHoldsNothing) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  const Worker& worker = Ready(0);
  Lease(worker, 2);
  proto::WorkerReport report;
  report.mutable_timeline_lost()->set_timeline(parts_->timeline() + 1);
  workers_.Send(0, report);
  EXPECT_FALSE(worker.lost_timeline) << "of another timeline, it is no news";
  EXPECT_EQ(parts_->scheduler->steps().held(worker.key), 2u);
  report.mutable_timeline_lost()->set_timeline(parts_->timeline());
  workers_.Send(0, report);
  EXPECT_TRUE(worker.lost_timeline);
  EXPECT_EQ(parts_->scheduler->steps().held(worker.key), 0u);
}

TEST_F(WorkerReportsTest, TheLastBatchGivesTheEpochItsTestResult) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob({.checkpoint = "{}"})));
  workers_.Connect(0);
  workers_.SendHello(0);
  SendReady(0, {.test = kTestExamples});
  for (uint64_t step = 0; step < kEpochSteps; ++step) Report(0, {Done(step)});
  parts_->history->CloseUpTo(kEpochSteps);
  Evaluate(*workers_.Find(0));
  TakeCauses();
  const uint64_t batches = parts_->TestBatches().total_steps();
  for (uint64_t batch = 0; batch + 1 < batches; ++batch) ReportBatch(0, batch);
  EXPECT_FALSE(parts_->history->IsEvaluated(0));
  ReportBatch(0, batches - 1, /*cut_step=*/kEpochSteps + 1);
  EXPECT_FALSE(parts_->history->IsEvaluated(0)) << "of another cut";
  ReportBatch(0, batches - 1);
  EXPECT_TRUE(parts_->history->IsEvaluated(0));
  EXPECT_EQ(parts_->scheduler->evaluation(), nullptr);
  EXPECT_THAT(TakeCauses(), Contains(Cause::kFacts));
}

TEST_F(WorkerReportsTest, ABatchThatTheTestSetLacksIsRejected) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob({.checkpoint = "{}"})));
  workers_.Connect(0);
  workers_.SendHello(0);
  SendReady(0, {.test = kTestExamples});
  Evaluate(*workers_.Find(0));
  ReportBatch(0, parts_->TestBatches().total_steps());
  EXPECT_TRUE(Rejected(0));
}

// --- OnGone ---

TEST_F(WorkerReportsTest, AGoneWorkersStepsAreOpenAgain) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  Lease(Ready(0), 2);
  TakeCauses();
  workers_.Break(0);
  EXPECT_EQ(parts_->scheduler->steps().leased_count(), 0u);
  EXPECT_THAT(TakeCauses(), Contains(Cause::kFacts));
  const Worker& other = Ready(1);
  const StepRun again = parts_->scheduler->steps().Take(other.key, 5, loop_.Now());
  EXPECT_EQ(again.first, 0u);
  EXPECT_EQ(again.count, 2u);
}

TEST_F(WorkerReportsTest, AtTheEndOfTheJobTheLastWorkersEndGoesOn) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  Ready(0);
  parts_->shutdown->Save({.values = WriteSmallCheckpoint(&store_, 1, 26)});
  loop_.RunUntilIdle();
  ASSERT_EQ(parts_->shutdown->phase(), Shutdown::Phase::kDismissingWorkers);
  workers_.Break(0);
  EXPECT_EQ(parts_->shutdown->phase(), Shutdown::Phase::kDismissingPs);
}

}  // namespace
}  // namespace shoal
