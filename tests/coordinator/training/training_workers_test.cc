#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/log/logging.h"
#include "coordinator/training_run.h"
#include "tests/common/base/fails_with.h"
#include "tests/coordinator/scripted_cluster.h"

namespace shoal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

TEST(TrainingRunTest, ALostWorkersStepsAreLeasedAgain) {
  ScriptedCluster cluster({});
  ScriptedWorker& lost = cluster.Join(0);
  ScriptedWorker& other = cluster.Join(1);
  EXPECT_THAT(other.leases, ElementsAre(2, 3));
  cluster.Disconnect(lost);
  cluster.FinishStep(other);
  cluster.FinishStep(other);
  EXPECT_THAT(other.leases, ElementsAre(0, 1));
  EXPECT_EQ(cluster.run->Status().steps_leased_again(), 2u);
}

TEST(TrainingRunTest, AWorkerThatLeavesHandsItsStepsBack) {
  ScriptedCluster cluster({});
  ScriptedWorker& leaving = cluster.Join(0);
  ScriptedWorker& other = cluster.Join(1);
  leaving.Leave("SIGTERM");
  cluster.Settle();
  EXPECT_EQ(cluster.WorkerStatus(0).state(), "left");
  EXPECT_EQ(cluster.WorkerStatus(0).detail(), "SIGTERM");
  cluster.FinishStep(other);
  EXPECT_THAT(other.leased, Contains(0));
  EXPECT_THAT(leaving.leased, ElementsAre(0, 1)) << "it gets no more";
}

// A worker that hangs must not be leased the same steps again and again.
TEST(TrainingRunTest, ASilentWorkersLeasesExpireAndGoToOthers) {
  ScriptedCluster cluster({});
  ScriptedWorker& silent = cluster.Join(0);
  ScriptedWorker& other = cluster.Join(1);
  const uint64_t timeline = silent.timeline;
  cluster.Advance(seconds(40));
  cluster.FinishStep(other);
  cluster.Advance(seconds(21));
  cluster.FinishStep(other);
  cluster.FinishStep(other);
  EXPECT_THAT(other.leased, AllOf(Contains(0), Contains(1)));
  EXPECT_THAT(silent.rejected, HasSubstr(" 60 s"));
  EXPECT_EQ(cluster.WorkerStatus(0).state(), "lost");
  // It was only slow: it comes back, and what it reports counts.
  ScriptedWorker& back =
      cluster.Join({.index = 0, .incarnation = 1, .timeline = timeline, .held_steps = {1}});
  back.Report(0);
  cluster.Settle();
  EXPECT_EQ(cluster.run->Status().steps_done(), 4u);
  EXPECT_THAT(back.leases, Not(IsEmpty()));
}

// It lives: its steps take longer than a lease.
TEST(TrainingRunTest, AWorkerWhoseStepsTakeLongIsToldWhatToRaise) {
  ScriptedCluster cluster({});
  ScriptedWorker& slow = cluster.Join(0);
  for (int i = 0; i < 13; ++i) {
    slow.SendComputing();
    cluster.Advance(seconds(5));
  }
  EXPECT_THAT(slow.rejected, AllOf(HasSubstr("computing"), HasSubstr(" 60 s"),
                                   HasSubstr("$.strategy.lease_timeout_seconds")));
  cluster.Join(0);
  EXPECT_THAT(cluster.WorkerStatus(0).detail(),
              AllOf(HasSubstr(" 60 s"), HasSubstr(" 1 time"),
                    HasSubstr("$.strategy.lease_timeout_seconds")));
}

TEST(TrainingRunTest, ASilentWorkersBatchesGoToOthersToo) {
  ScriptedCluster cluster({.test_examples = 50, .epochs = 1});
  ScriptedWorker& silent = cluster.Join(0);
  cluster.FinishAll(silent);
  EXPECT_THAT(silent.evaluations, SizeIs(2));
  cluster.Advance(seconds(61));
  // The last checkpoint is whole and nobody trains, so the job has ended.
  ScriptedWorker& other = cluster.Connect({.index = 1});
  EXPECT_TRUE(other.job_done);
}

// Where steps are short, workers hold many; still they take turns.
TEST(TrainingRunTest, WorkersTakeTurns) {
  ScriptedCluster cluster({.epochs = 200});
  ScriptedWorker& one = cluster.Join(0);
  ScriptedWorker& other = cluster.Join(1);
  for (int i = 0; i < 400; ++i) {
    cluster.Advance(milliseconds(1));
    cluster.FinishStep(one);
    cluster.FinishStep(other);
  }
  EXPECT_GT(one.leases.size(), 50u);
  for (const ScriptedWorker* worker : {&one, &other}) {
    uint64_t run = 0, longest = 0;
    for (const uint64_t step : worker->leased) {
      run = worker->leased.contains(step + 1) ? run + 1 : 0;
      longest = std::max(longest, run);
    }
    EXPECT_LT(longest, 32u);
  }
}

// How often the coordinator looks at the clock, which it does for every worker that it deals with,
// and how many orders it sends, while workers report steps.
std::pair<uint64_t, uint64_t> CostOfReports(int workers) {
  ScriptedCluster cluster({.workers = workers, .epochs = 1000});
  std::vector<ScriptedWorker*> all;
  for (int i = 0; i < workers; ++i) all.push_back(&cluster.Join(i));
  uint64_t readings = 0, orders = 0;
  for (int i = 0; i < 100; ++i) {
    ScriptedWorker& worker = *all[i % 5];
    worker.Report(worker.leases.front());
    worker.leases.pop_front();
    const uint64_t before = cluster.loop.clock_readings(), leased = worker.leased.size();
    cluster.loop.RunUntilIdle();
    readings += cluster.loop.clock_readings() - before;
    cluster.Settle();
    orders += worker.leased.size() - leased;
  }
  return {readings, orders};
}

TEST(TrainingRunTest, AReportCostsTheSameWithAThousandWorkers) {
  const auto [readings, orders] = CostOfReports(5);
  const auto [readings_of_many, orders_of_many] = CostOfReports(1000);
  EXPECT_LE(readings_of_many, readings);
  EXPECT_EQ(orders_of_many, 100u);
  EXPECT_EQ(orders, 100u);
}

// Also where there are fewer steps than they would hold, since the window is short.
TEST(TrainingRunTest, WorkersOfEqualSpeedGetEqualShares) {
  constexpr int kWorkers = 20;
  for (const int window : {24, 4096}) {
    SCOPED_TRACE(window);
    ScriptedCluster cluster(
        {.workers = kWorkers,
         .strategy = absl::StrCat(R"({"name": "async", "window_steps": )", window, "}"),
         .epochs = 10000});
    std::vector<ScriptedWorker*> workers;
    for (int i = 0; i < kWorkers; ++i) workers.push_back(&cluster.Join(i));
    std::vector<int> done(kWorkers, 0);
    constexpr int kRounds = 100;
    for (int round = 0; round < kRounds; ++round) {
      cluster.Advance(milliseconds(5));
      for (int i = 0; i < kWorkers; ++i) {
        if (workers[i]->leases.empty()) continue;
        cluster.FinishStep(*workers[i]);
        ++done[i];
      }
    }
    const auto [least, most] = std::minmax_element(done.begin(), done.end());
    EXPECT_GT(*least, kRounds / 10);
    EXPECT_LE(*most - *least, kRounds / 20);
  }
}

TEST(TrainingRunTest, ALossThatIsNotFiniteIsSaidOnce) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishStep(worker);
  testing::internal::CaptureStderr();
  worker.loss = NAN;
  for (int i = 0; i < 3; ++i) cluster.FinishStep(worker);
  FlushLog(std::chrono::minutes(1));
  const std::string log = testing::internal::GetCapturedStderr();
  const std::string said = "the loss of step 1, computed by worker 0, is not a finite number";
  EXPECT_THAT(log, HasSubstr(said));
  EXPECT_EQ(log.find("not a finite number"), log.rfind("not a finite number"));
}

// In a row: one step without it, and the count begins anew.
TEST(TrainingRunTest, TooManyLossesThatAreNotFiniteEndTheJob) {
  ScriptedCluster cluster(
      {.workers = 2, .checkpoint = R"({"every_steps": 50, "keep": 2})", .epochs = 100});
  ScriptedWorker& worker = cluster.Join(0);
  while (cluster.StoredSteps().empty()) cluster.FinishStep(worker);
  worker.loss = INFINITY;
  for (int i = 0; i < 99; ++i) cluster.FinishStep(worker);
  worker.loss = 1;
  cluster.FinishStep(worker);
  cluster.ps[0]->value = NAN;
  worker.loss = NAN;
  for (int i = 0; i < 99; ++i) cluster.FinishStep(worker);
  EXPECT_FALSE(cluster.over.has_value());
  cluster.FinishStep(worker);
  EXPECT_TRUE(worker.job_done) << "it would look for a coordinator and a ps that have gone";
  EXPECT_THAT(worker.job_failure, HasSubstr(" 100 steps "));
  ScriptedWorker& late = cluster.Connect({.index = 1});
  EXPECT_EQ(late.job_failure, worker.job_failure);
  EXPECT_FALSE(cluster.ps[0]->stopped) << "workers first";
  cluster.Disconnect(worker);
  cluster.Disconnect(late);
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_TRUE(cluster.ps[0]->stopped) << "its variables are not to be adopted";
  EXPECT_EQ(cluster.run->Status().phase(), "failed");
  const CheckpointStore store(cluster.run_dir() + "/checkpoints");
  const StoredCheckpoint finite = **store.NewestVerified({}, nullptr);
  EXPECT_TRUE(finite.manifest.finite());
  EXPECT_THAT(*cluster.over,
              FailsWith(absl::StatusCode::kDataLoss,
                        {" 100 steps ", "$.stop_after_nan_steps", finite.directory}));
}

// What there is to go on from, and where: each time another thing is to be done.
TEST(TrainingRunTest, SaysWhetherThereIsACheckpointThatIsFinite) {
  const TemporaryDirectory directory;
  ScriptedCluster cluster(
      {.checkpoint = R"({"every_steps": 5, "keep": 1})", .directory = directory.path()});
  ScriptedWorker& worker = cluster.Join(0);
  const auto log_of_next_step = [&cluster](ScriptedWorker& by) {
    testing::internal::CaptureStderr();
    cluster.FinishStep(by);
    FlushLog(std::chrono::minutes(1));
    return testing::internal::GetCapturedStderr();
  };
  worker.loss = NAN;
  cluster.ps[0]->value = NAN;
  EXPECT_THAT(log_of_next_step(worker),
              AllOf(HasSubstr("--run_dir=" + cluster.run_dir()), HasSubstr("at step 0")));
  for (int i = 0; i < 3; ++i) cluster.FinishStep(worker);
  EXPECT_THAT(log_of_next_step(worker),
              AllOf(HasSubstr(cluster.run_dir() + "/checkpoints/step-000000000005"),
                    Not(HasSubstr("--run_dir=" + cluster.run_dir()))));
  EXPECT_THAT(cluster.run->Status().last_checkpoint().not_finite(), Not(IsEmpty()));
  // What its predecessor has written, a coordinator that takes over names too.
  cluster.ps[0]->value = 1;
  while (cluster.StoredSteps().front() == 5) cluster.FinishStep(worker);
  cluster.StartCoordinator();
  ScriptedWorker& again = cluster.Join(0);
  again.loss = NAN;
  EXPECT_THAT(log_of_next_step(again),
              AllOf(HasSubstr("--run_dir=" + cluster.run_dir()), HasSubstr("step-000000000010")));
}

TEST(TrainingRunTest, AReportOfAnotherTimelineIsDropped) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  worker.timeline += 1;
  worker.Report(0);
  cluster.Settle();
  EXPECT_EQ(cluster.run->Status().steps_done(), 0u);
}

// An answer of a ps from before the timeline may reach a worker late.
TEST(TrainingRunTest, AWorkerThatLostAnOpenTimelineIsToldOfItAgain) {
  ScriptedCluster cluster({});
  ScriptedWorker& misled = cluster.Join(0);
  ScriptedWorker& other = cluster.Join(1);
  const uint64_t timeline = misled.timeline;
  proto::WorkerReport report;
  report.mutable_timeline_lost()->set_timeline(timeline);
  misled.stream().Send(report);
  cluster.Settle();
  EXPECT_THAT(misled.timelines, ElementsAre(timeline)) << "not at once: it might lose it again";
  cluster.FinishStep(other);
  EXPECT_THAT(other.leased, Contains(0)) << "what it has dropped goes to others";
  cluster.Advance(milliseconds(250));
  EXPECT_THAT(misled.timelines, ElementsAre(timeline, timeline));
  EXPECT_THAT(misled.leases, Not(IsEmpty()));
  // Of a timeline that is over, it is no news.
  report.mutable_timeline_lost()->set_timeline(timeline - 1);
  misled.stream().Send(report);
  cluster.Advance(seconds(1));
  EXPECT_THAT(misled.timelines, SizeIs(2));
}

// As it does when its certificate was replaced.
TEST(TrainingRunTest, StepsOfAWorkerThatReopensItsStreamAreNotLeasedAgain) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  ScriptedWorker& other = cluster.Join(1);
  const uint64_t timeline = worker.timeline;
  ASSERT_THAT(worker.leases, ElementsAre(0, 1));
  proto::WorkerReport report;
  report.mutable_reopening();
  worker.stream().Send(report);
  worker.stream().Close(absl::OkStatus());
  cluster.Settle();
  for (int i = 0; i < 3; ++i) cluster.FinishStep(other);
  ScriptedWorker& back =
      cluster.Join({.index = 0, .incarnation = 1, .timeline = timeline, .held_steps = {0, 1}});
  for (int i = 0; i < 3; ++i) cluster.FinishStep(other);
  EXPECT_THAT(other.leased, AllOf(Not(Contains(0)), Not(Contains(1))));
  back.Report(0);
  back.Report(1);
  cluster.Settle();
  EXPECT_EQ(cluster.run->Status().steps_done(), 8u);
  EXPECT_EQ(cluster.run->Status().steps_leased_again(), 0u);
}

}  // namespace
}  // namespace shoal
