#include "coordinator/worker_reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/coordinator/run_parts_fixture.h"

namespace shoal {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using Cause = Wakeup::Cause;
using State = Membership::Record::State;

class WorkerReportsTest : public RunPartsTest {
 protected:
  // Leads an open timeline that waits for the first worker.
  void Begin(Job job) {
    ASSERT_NO_FATAL_FAILURE(Lead());
    Open(std::move(job));
  }
  void Open(Job job) {
    MakeParts(std::move(job));
    timeline_.emplace(&*parts_, &wakeup_);
    reports_.emplace(&*parts_, &*timeline_, &wakeup_);
    workers_.on_ready = [this](Worker& worker, const proto::WorkerReady& ready) {
      reports_->OnReady(worker, ready);
    };
    workers_.on_report = [this](Worker& worker, const proto::WorkerReport& report) {
      reports_->OnReport(worker, report);
    };
    workers_.on_gone = [this](Worker& worker, const std::string& why) {
      reports_->OnGone(worker, why);
    };
    timeline_->OnOpened(opened_.back());
    TakeCauses();
  }
  struct Seen {
    uint64_t training = kExamples;
    uint64_t test = 0;
    std::optional<uint32_t> shard_map;
  };
  void SendReady(int index, const Seen& seen) {
    proto::WorkerReport report;
    report.mutable_ready()->set_training_examples(seen.training);
    report.mutable_ready()->set_test_examples(seen.test);
    report.mutable_ready()->set_shard_map_fingerprint(
        seen.shard_map.value_or(parts_->shard_map->Fingerprint()));
    workers_.Send(index, report);
  }
  // Connects a worker that is ready.
  Worker& Ready(int index, const proto::WorkerHello& hello = {}) {
    workers_.Connect(index);
    workers_.SendHello(index, hello);
    SendReady(index, Seen());
    return *workers_.Find(index);
  }
  // Leases this many steps to the worker.
  void Lease(const Worker& worker, uint64_t count) {
    parts_->scheduler->steps().Take(worker.key, count, loop_.Now());
  }
  proto::StepDone Done(uint64_t step) const {
    proto::StepDone done;
    done.set_step(step);
    done.set_examples(parts_->plan->Range(step).count);
    done.set_loss_sum(1);
    done.add_metric_sums(1);
    return done;
  }
  void Report(int index, const std::vector<proto::StepDone>& steps) {
    proto::WorkerReport report;
    report.mutable_steps_done()->set_timeline(parts_->timeline());
    for (const proto::StepDone& step : steps) *report.mutable_steps_done()->add_steps() = step;
    workers_.Send(index, report);
  }
  // Begins the evaluation of epoch 0, and leases its batches to the worker.
  void Evaluate(const Worker& worker) {
    parts_->scheduler->BeginEvaluation(std::make_unique<Evaluation>(
        0, kEpochSteps, parts_->TestBatches().total_steps(), 1, std::chrono::seconds(60)));
    parts_->scheduler->evaluation()->batches().Take(worker.key, 4, loop_.Now());
  }
  void ReportBatch(int index, uint64_t batch, uint64_t cut_step = kEpochSteps) {
    proto::WorkerReport report;
    proto::EvaluationDone* done = report.mutable_evaluation_done();
    done->set_timeline(parts_->timeline());
    done->set_cut_step(cut_step);
    done->set_batch(batch);
    const StepPlan batches = parts_->TestBatches();
    done->set_examples(batch < batches.total_steps() ? batches.Range(batch).count : 1);
    done->set_loss_sum(1);
    done->add_metric_sums(1);
    workers_.Send(index, report);
  }
  // Returns whether the worker was rejected for good since the last call.
  bool Rejected(int index) {
    for (const proto::WorkerOrder& order : workers_.Orders(index)) {
      if (order.has_rejected()) return order.rejected().final();
    }
    return false;
  }
  State StateOf(int index) const { return parts_->membership->records().at(index).state; }
  // The answer of a ps that has applied the steps below `base`.
  proto::Claimed Claimed(uint64_t base, uint64_t done_below) const {
    proto::Claimed claimed;
    claimed.set_timeline(parts_->timeline());
    claimed.set_base(base);
    claimed.set_done_below(done_below);
    claimed.set_training_examples(kExamples);
    return claimed;
  }

  std::optional<RunTimeline> timeline_;
  std::optional<WorkerReports> reports_;
};

// --- OnReady ---

TEST_F(WorkerReportsTest, TheFirstReadyWorkerBeginsTheTraining) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  const Worker& worker = Ready(0);
  EXPECT_TRUE(worker.ready);
  EXPECT_EQ(StateOf(0), State::kUp);
  EXPECT_EQ(parts_->plan->examples(), kExamples);
  EXPECT_TRUE(parts_->worker_came);
  EXPECT_TRUE(parts_->training());
  EXPECT_EQ(Announced(0), parts_->timeline());
  EXPECT_THAT(parts_->reported, ElementsAre(worker.key));
  EXPECT_THAT(TakeCauses(), Contains(Cause::kFacts));
}

TEST_F(WorkerReportsTest, AFurtherWorkerIsOneReport) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  Ready(0);
  TakeCauses();
  const Worker& worker = Ready(1);
  EXPECT_THAT(parts_->reported, Contains(worker.key));
  EXPECT_THAT(TakeCauses(), ElementsAre(Cause::kReports));
}

TEST_F(WorkerReportsTest, AWorkerOfAnotherShardMapIsRejected) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  workers_.Connect(0);
  workers_.SendHello(0);
  SendReady(0, {.shard_map = parts_->shard_map->Fingerprint() + 1});
  EXPECT_TRUE(Rejected(0));
  EXPECT_FALSE(parts_->worker_came);
}

TEST_F(WorkerReportsTest, AWorkerWithoutTrainingExamplesIsRejected) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  workers_.Connect(0);
  workers_.SendHello(0);
  SendReady(0, {.training = 0});
  EXPECT_TRUE(Rejected(0));
}

TEST_F(WorkerReportsTest, AFirstWorkerWithAnUnknownTestSetIsRejected) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  workers_.Connect(0);
  workers_.SendHello(0);
  SendReady(0, {.test = kTestExamples});
  EXPECT_TRUE(Rejected(0));
  EXPECT_FALSE(parts_->plan.has_value());
}

TEST_F(WorkerReportsTest, AWorkerWithOtherCountsThanThePlanIsRejected) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  Ready(0);
  for (const Seen& seen : {Seen{.training = kExamples - 1}, Seen{.test = 1}}) {
    workers_.Connect(1);
    workers_.SendHello(1);
    SendReady(1, seen);
    EXPECT_TRUE(Rejected(1));
  }
  EXPECT_EQ(parts_->plan->examples(), kExamples);
}

TEST_F(WorkerReportsTest, AFurtherWorkerKeepsTheStepsThatItHolds) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  Ready(0);
  proto::WorkerHello hello;
  hello.set_timeline(parts_->timeline());
  hello.add_held_steps(3);
  EXPECT_TRUE(parts_->scheduler->steps().Holds(Ready(1, hello).key, 3));
}

TEST_F(WorkerReportsTest, AWorkerThatWasToldToDrainDoesNotGetReady) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  workers_.Connect(0);
  workers_.SendHello(0);
  parts_->membership->record(*workers_.Find(0)).state = State::kDraining;
  SendReady(0, Seen());
  EXPECT_FALSE(workers_.Find(0)->ready);
  EXPECT_EQ(StateOf(0), State::kDraining);
}

TEST_F(WorkerReportsTest, WithoutATimelineAReadyWorkerWaits) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  timeline_->OnOver("a ps was started again");
  const Worker& worker = Ready(0);
  EXPECT_TRUE(worker.ready);
  EXPECT_TRUE(parts_->worker_came);
  EXPECT_FALSE(parts_->training());
  EXPECT_EQ(Announced(0), 0u);
}

TEST_F(WorkerReportsTest, AtTheEndOfTheJobAReadyWorkerGetsNoWork) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  workers_.Connect(0);
  workers_.SendHello(0);
  parts_->shutdown->Fail("the values are not finite");
  workers_.Orders(0);
  SendReady(0, Seen());
  EXPECT_EQ(Announced(0), 0u);
  EXPECT_THAT(parts_->reported, IsEmpty());
}

// --- OnReport ---

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

// --- CompareWithPs ---

TEST_F(WorkerReportsTest, StepsThatAPsLacksAreOpenAgain) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  Ready(0);
  Ready(1);
  Report(0, {Done(0)});
  Report(1, {Done(1), Done(2)});
  workers_.Orders(1);
  TakeCauses();
  proto::Claimed claimed = Claimed(1, 3);
  claimed.add_applied_after_base(2);
  reports_->CompareWithPs(1, claimed);
  EXPECT_EQ(parts_->scheduler->steps().base(), 1u);
  EXPECT_THAT(parts_->scheduler->steps().done_after_base(), ElementsAre(2));
  EXPECT_THAT(parts_->counted, UnorderedElementsAre(1));
  EXPECT_TRUE(Rejected(1)) << "it reported step 1";
  EXPECT_NE(workers_.Find(0), nullptr);
  EXPECT_THAT(TakeCauses(), Contains(Cause::kFacts));
}

TEST_F(WorkerReportsTest, StepsReportedAfterTheClaimAreNotLacked) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  Ready(0);
  Report(0, {Done(0), Done(1)});
  TakeCauses();
  reports_->CompareWithPs(0, Claimed(/*base=*/1, /*done_below=*/1));
  EXPECT_EQ(parts_->scheduler->steps().base(), 2u);
  EXPECT_NE(workers_.Find(0), nullptr);
  EXPECT_THAT(TakeCauses(), IsEmpty());
}

TEST_F(WorkerReportsTest, AGapThatExceedsTheWindowIsClaimedAgain) {
  Job job = MakeJob();
  job.strategy.window_steps = 2;
  ASSERT_NO_FATAL_FAILURE(Begin(std::move(job)));
  Ready(0);
  Report(0, {Done(0), Done(1), Done(2)});
  reports_->CompareWithPs(0, Claimed(0, 3));
  ASSERT_TRUE(parts_->abandoned.has_value());
  EXPECT_EQ(parts_->abandoned->timeline, fleet_->timeline());
  EXPECT_EQ(parts_->abandoned->remedy, AbandonedTimeline::Remedy::kClaimAgain);
  EXPECT_FALSE(parts_->training());
  EXPECT_TRUE(Rejected(0));
  reports_->CompareWithPs(1, Claimed(0, 3));  // before the next turn
  EXPECT_EQ(parts_->timeline(), 0u);
}

TEST_F(WorkerReportsTest, APsOfOtherExamplesIsRestored) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  Ready(0);
  proto::Claimed claimed = Claimed(0, 0);
  claimed.set_training_examples(0);
  reports_->CompareWithPs(0, claimed);
  EXPECT_FALSE(parts_->abandoned.has_value()) << "it does not know them yet";
  claimed.set_training_examples(kExamples + 1);
  reports_->CompareWithPs(0, claimed);
  ASSERT_TRUE(parts_->abandoned.has_value());
  EXPECT_EQ(parts_->abandoned->remedy, AbandonedTimeline::Remedy::kRestore);
  EXPECT_FALSE(parts_->training());
}

TEST_F(WorkerReportsTest, BeforeTrainingTheStepsOfThePsAreTaken) {
  ASSERT_NO_FATAL_FAILURE(Adopt(9, 5));
  Open(MakeJob());
  for (int i = 0; i < kPsCount; ++i) ps(i).Take<proto::ControlRequest>();
  loop_.Advance(std::chrono::seconds(1));
  for (int i = 0; i < kPsCount; ++i) AnswerClaim(i, {.timeline = 9, .base = 7});
  reports_->CompareWithPs(0, Claimed(7, 0));
  EXPECT_EQ(parts_->scheduler->steps().base(), 7u);
}

TEST_F(WorkerReportsTest, AtTheEndOfTheJobNoPsIsCompared) {
  ASSERT_NO_FATAL_FAILURE(Begin(MakeJob()));
  Ready(0);
  Report(0, {Done(0)});
  parts_->shutdown->Fail("the values are not finite");
  reports_->CompareWithPs(0, Claimed(0, 1));
  EXPECT_EQ(parts_->scheduler->steps().base(), 1u);
}

}  // namespace
}  // namespace shoal
