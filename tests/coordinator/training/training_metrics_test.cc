// What a TrainingRun shows to Prometheus.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/metrics/sample_value.h"
#include "tests/coordinator/scripted_cluster.h"

namespace shoal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Ge;
using testing::Optional;

std::optional<double> Value(const ScriptedCluster& cluster, MetricName metric,
                            const std::vector<std::string>& labels = {}) {
  return SampleValue(*cluster.run, metric, labels);
}

TEST(TrainingMetricsTest, AStepCountsOnceHoweverOftenItIsReported) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  EXPECT_EQ(Value(cluster, "shoal_loss"), std::nullopt);
  for (int i = 0; i < 3; ++i) cluster.FinishStep(worker);
  worker.Report(0);
  cluster.Settle();
  EXPECT_EQ(Value(cluster, "shoal_steps_done_total"), 3);
  EXPECT_EQ(Value(cluster, "shoal_steps_repeated_total"), 1);
  EXPECT_EQ(Value(cluster, "shoal_examples_total"), 48);
  EXPECT_EQ(Value(cluster, "shoal_steps_leased_total"), 5) << "two are held ahead";
  EXPECT_EQ(Value(cluster, "shoal_leased_steps", {"0"}), 2);
  EXPECT_EQ(Value(cluster, "shoal_base_step"), 3);
  EXPECT_EQ(Value(cluster, "shoal_job_steps"), 26);
  EXPECT_EQ(Value(cluster, "shoal_epoch"), 1);
  EXPECT_EQ(Value(cluster, "shoal_loss"), 1);
  EXPECT_EQ(Value(cluster, "shoal_metric", {"accuracy"}), 0.5);
}

TEST(TrainingMetricsTest, TheLossOfAnEpochStaysUntilTheNextHasOne) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  for (int i = 0; i < 13; ++i) cluster.FinishStep(worker);
  EXPECT_EQ(Value(cluster, "shoal_epoch"), 2);
  EXPECT_EQ(Value(cluster, "shoal_loss"), 1);
}

TEST(TrainingMetricsTest, ALostWorkerIsDownUntilAnotherProcessComes) {
  ScriptedCluster cluster({});
  cluster.Join(0);
  ScriptedWorker& lost = cluster.Join(1);
  EXPECT_EQ(Value(cluster, "shoal_workers_ready"), 2);
  EXPECT_EQ(Value(cluster, "shoal_task_up", {"worker", "1"}), 1);
  cluster.Disconnect(lost);
  EXPECT_EQ(Value(cluster, "shoal_workers_ready"), 1);
  EXPECT_EQ(Value(cluster, "shoal_task_up", {"worker", "1"}), 0);
  // The same process, over another stream.
  ScriptedWorker& killed = cluster.Join({.index = 1, .incarnation = 2});
  EXPECT_EQ(Value(cluster, "shoal_task_restarts_total", {"worker", "1"}), 0);
  cluster.Disconnect(killed);
  cluster.Join({.index = 1, .incarnation = 1000});
  EXPECT_EQ(Value(cluster, "shoal_task_restarts_total", {"worker", "1"}), 1);
  EXPECT_EQ(Value(cluster, "shoal_task_up", {"worker", "1"}), 1);
}

TEST(TrainingMetricsTest, AWorkerThatLeftInOrderIsNotMissed) {
  ScriptedCluster cluster({});
  cluster.Join(0);
  ScriptedWorker& leaving = cluster.Join(1);
  leaving.Leave("drained");
  cluster.Settle();
  cluster.Disconnect(leaving);
  EXPECT_EQ(Value(cluster, "shoal_task_up", {"worker", "1"}), std::nullopt);
}

TEST(TrainingMetricsTest, ExpiredLeasesAreLeasedAgain) {
  ScriptedCluster cluster({});
  cluster.Join(0);
  cluster.Advance(seconds(61));
  EXPECT_EQ(Value(cluster, "shoal_lease_expiries_total"), 1);
  EXPECT_EQ(Value(cluster, "shoal_steps_leased_again_total"), 0);
  cluster.Join(1);
  EXPECT_EQ(Value(cluster, "shoal_steps_leased_again_total"), 2);
}

TEST(TrainingMetricsTest, AnotherTimelineIsCountedAndTheFiguresGoOn) {
  ScriptedCluster cluster({.checkpoint = R"({"every_steps": 5})"});
  ScriptedWorker& worker = cluster.Join(0);
  for (int i = 0; i < 6; ++i) cluster.FinishStep(worker);
  const auto before = Value(cluster, "shoal_timeline");
  EXPECT_EQ(Value(cluster, "shoal_timelines_opened_total"), 1);
  cluster.ps[0]->Restart();
  cluster.Advance(seconds(3));
  EXPECT_EQ(Value(cluster, "shoal_timelines_opened_total"), 2);
  EXPECT_EQ(Value(cluster, "shoal_task_restarts_total", {"ps", "0"}), 1);
  EXPECT_GT(Value(cluster, "shoal_timeline"), before);
  EXPECT_EQ(Value(cluster, "shoal_steps_done_total"), 6) << "a counter never goes back";
}

// How far the job is, base over steps, is never a division by zero.
TEST(TrainingMetricsTest, ATakeoverHasTheStepsThatStatusHas) {
  ScriptedCluster cluster({.checkpoint = R"({"every_steps": 5})"});
  EXPECT_EQ(Value(cluster, "shoal_job_steps"), std::nullopt) << "nobody has counted";
  ScriptedWorker& worker = cluster.Join(0);
  for (int i = 0; i < 6; ++i) cluster.FinishStep(worker);
  ASSERT_FALSE(cluster.StoredSteps().empty());
  cluster.StartCoordinator();
  EXPECT_EQ(cluster.run->Status().total_steps(), 26u);
  EXPECT_EQ(Value(cluster, "shoal_job_steps"), 26);
  EXPECT_EQ(Value(cluster, "shoal_job_epochs"), 2);
  EXPECT_EQ(Value(cluster, "shoal_base_step"), 6);
  EXPECT_EQ(Value(cluster, "shoal_epoch"), 1);
}

TEST(TrainingMetricsTest, TheAgeOfACheckpointCountsFromItsCommit) {
  ScriptedCluster cluster({.checkpoint = R"({"every_seconds": 10})"});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.ps[0]->write_error = "no space";
  for (int i = 0; i < 3; ++i) cluster.FinishStep(worker);
  cluster.Advance(milliseconds(10500));
  for (int i = 0; i < 2; ++i) cluster.FinishStep(worker);
  EXPECT_EQ(Value(cluster, "shoal_checkpoint_interval_seconds"), 10);
  EXPECT_EQ(Value(cluster, "shoal_checkpoint_failures_total"), 1);
  EXPECT_EQ(Value(cluster, "shoal_checkpoints_total"), 0);
  EXPECT_EQ(Value(cluster, "shoal_checkpoint_age_seconds"), 10.5) << "there is none yet";
  EXPECT_EQ(Value(cluster, "shoal_checkpoint_bytes"), 0);

  cluster.ps[0]->write_error.clear();
  cluster.Advance(milliseconds(10500));
  for (int i = 0; i < 4; ++i) cluster.FinishStep(worker);
  EXPECT_EQ(Value(cluster, "shoal_checkpoints_total"), 1);
  EXPECT_EQ(Value(cluster, "shoal_checkpoint_failures_total"), 1);
  EXPECT_EQ(Value(cluster, "shoal_checkpoint_age_seconds"), 0);
  EXPECT_THAT(Value(cluster, "shoal_checkpoint_bytes"), Optional(Ge(1)));
  EXPECT_THAT(Value(cluster, "shoal_checkpoint_step"), Optional(Ge(5)));
  cluster.Advance(seconds(3));
  EXPECT_EQ(Value(cluster, "shoal_checkpoint_age_seconds"), 3);
}

TEST(TrainingMetricsTest, AnEvaluationIsSeen) {
  ScriptedCluster cluster({.test_examples = 20});
  ScriptedWorker& worker = cluster.Join(0);
  EXPECT_EQ(Value(cluster, "shoal_test_loss"), std::nullopt);
  cluster.FinishAll(worker);
  while (!worker.evaluations.empty()) {
    worker.Evaluate();
    cluster.Settle();
  }
  EXPECT_THAT(Value(cluster, "shoal_evaluation_batches_total"), Optional(Ge(2)));
  EXPECT_EQ(Value(cluster, "shoal_test_loss"), 3);
  EXPECT_EQ(Value(cluster, "shoal_test_metric", {"accuracy"}), 0.25);
}

TEST(TrainingMetricsTest, ExactlyOnePhaseIsOneAndAStopIsNotReady) {
  ScriptedCluster cluster({});
  cluster.Join(0);
  EXPECT_EQ(Value(cluster, "shoal_phase", {"training"}), 1);
  EXPECT_EQ(Value(cluster, "shoal_phase", {"stopping"}), 0);
  EXPECT_EQ(cluster.run->CheckReady(), absl::OkStatus());
  cluster.run->Stop();
  EXPECT_EQ(Value(cluster, "shoal_phase", {"training"}), 0);
  EXPECT_EQ(Value(cluster, "shoal_phase", {"stopping"}), 1);
  EXPECT_EQ(cluster.run->CheckReady(), absl::FailedPreconditionError("stopping"));
}

TEST(TrainingMetricsTest, WaitsOfTheRunAreCounted) {
  ScriptedCluster cluster({});
  EXPECT_EQ(Value(cluster, "shoal_waits"), 1) << "a worker";
  cluster.Advance(seconds(2));
  EXPECT_THAT(Value(cluster, "shoal_waiting_seconds", {"worker", "", "none is ready"}),
              Optional(Ge(1)));
  EXPECT_EQ(cluster.run->CheckReady(), absl::OkStatus())
      << "which is nobody's readiness but the worker's";
  cluster.Join(0);
  cluster.Advance(seconds(1));
  EXPECT_EQ(Value(cluster, "shoal_waits"), 0);
  EXPECT_EQ(Value(cluster, "shoal_waiting_seconds", {"worker", "", "none is ready"}), std::nullopt);
}

}  // namespace
}  // namespace shoal
