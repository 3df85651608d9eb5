// The strategy sync, as far as it is the coordinator's (section 13 of the protocol).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/log/logging.h"
#include "tests/common/base/fails_with.h"
#include "tests/coordinator/operators/operator_request.h"
#include "tests/coordinator/scripted_cluster.h"
#include "tests/coordinator/stopped_with_checkpoint.h"

namespace shoal {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string Over(const ScriptedCluster& cluster) {
  return cluster.over.has_value() ? cluster.over->ToString() : "not over";
}

// Steps [0, count) are done, by this worker.
void DoSteps(ScriptedCluster& cluster, ScriptedWorker& worker, uint64_t count) {
  while (cluster.run->dispatcher()->base() < count) {
    ASSERT_FALSE(worker.leases.empty());
    cluster.FinishStep(worker);
  }
}

TEST(TrainingRoundsTest, AStepIsLeasedWhenTheRoundsBeforeItsOwnAreDone) {
  ScriptedCluster cluster({.rounds_of = 4});
  ScriptedWorker& worker = cluster.Join(0);
  ScriptedWorker& other = cluster.Join(1);
  EXPECT_THAT(worker.leases, ElementsAre(0, 1));
  EXPECT_THAT(other.leases, ElementsAre(2, 3));
  cluster.FinishAll(other);
  EXPECT_THAT(other.leased, ElementsAre(2, 3));
  cluster.FinishStep(worker);
  cluster.FinishStep(worker);
  EXPECT_THAT(other.leases, ElementsAre(4, 5));
  EXPECT_EQ(other.round.first(), 4u);
  EXPECT_EQ(other.round.count(), 4u);
  EXPECT_EQ(other.round.number(), 1u);
}

TEST(TrainingRoundsTest, WithoutANumberARoundHasAStepForEachListedWorker) {
  ScriptedCluster cluster({.workers = 3, .rounds_of = 0});
  ScriptedWorker& worker = cluster.Join(0);
  EXPECT_EQ(worker.round.count(), 3u);
  EXPECT_THAT(cluster.ps[0]->loads.at(0).job(), HasSubstr(R"("gradients_per_update":3)"));
  cluster.FinishStep(worker);
  // A successor makes the same job, which the ps hold already.
  cluster.StartCoordinator();
  ScriptedWorker& again = cluster.Join({.index = 0, .incarnation = 9});
  EXPECT_EQ(cluster.ps[0]->loads.size(), 1u);
  EXPECT_THAT(again.leased, ElementsAre(1, 2)) << "the rest of the round";
}

TEST(TrainingRoundsTest, MoreGradientsThanAnEpochHasAreRejected) {
  ScriptedCluster cluster({.rounds_of = 14});
  cluster.Join(0);
  cluster.Advance(seconds(6));
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_THAT(*cluster.over, FailsWith(absl::StatusCode::kInvalidArgument,
                                       {"$.strategy.gradients_per_update", " 14", " 13 "}));
}

// After a takeover, and of a step that somebody else was faster with.
TEST(TrainingRoundsTest, AStepThatWasInIsDoneWithoutExamples) {
  ScriptedCluster cluster({.rounds_of = 4});
  ScriptedWorker& worker = cluster.Join(0);
  ScriptedWorker& other = cluster.Join(1);
  cluster.FinishAll(other);
  EXPECT_EQ(cluster.run->dispatcher()->base(), 0u);
  for (const uint64_t step : {0, 1}) {
    cluster.ps[0]->applied.insert(step);
    worker.ReportAlreadyApplied(step);
  }
  worker.leases.clear();
  cluster.Settle();
  EXPECT_EQ(worker.rejected, "");
  EXPECT_EQ(cluster.run->dispatcher()->base(), 4u);
  EXPECT_EQ(cluster.WorkerStatus(0).done(), 0u) << "it has computed none";
  other.ReportAlreadyApplied(3);
  cluster.Settle();
  EXPECT_EQ(other.rejected, "") << "also of one that is done";
  // The epoch's figures are of what was reported.
  while (cluster.run->dispatcher()->base() < 13) {
    for (ScriptedWorker* each : {&worker, &other})
      if (!each->leases.empty()) cluster.FinishStep(*each);
  }
  const auto epoch = cluster.run->Status().history(0);
  EXPECT_EQ(epoch.examples(), 168u);
  EXPECT_DOUBLE_EQ(epoch.loss(), 1);
}

// Step 0 is in nowhere, and the others wait for its round at the ps, with steps of the next one.
TEST(TrainingRoundsTest, AWorkerThatAwaitsAnUnpushedStepComputesIt) {
  for (const bool comes_back : {false, true}) {
    ScriptedCluster cluster({.rounds_of = 4});
    ScriptedWorker& liar = cluster.Join(0);
    ScriptedWorker& honest = cluster.Join(1);
    ScriptedWorker& other = cluster.Join(2);
    EXPECT_THAT(liar.leases, ElementsAre(0, 1));
    liar.Report(0);
    cluster.Settle();
    liar.leases.pop_front();
    cluster.FinishStep(liar);
    cluster.FinishStep(honest);
    cluster.FinishStep(honest);
    EXPECT_EQ(cluster.run->dispatcher()->base(), 4u);
    ASSERT_THAT(honest.leases, ElementsAre(testing::Ge(4)));
    ASSERT_THAT(other.leases, ElementsAre(testing::Ge(4)));
    const uint64_t timeline = honest.timeline;
    const uint64_t held = honest.leases.front();
    if (!comes_back) {
      proto::WorkerReport lost;
      lost.mutable_timeline_lost()->set_timeline(timeline);
      for (ScriptedWorker* each : {&honest, &other}) {
        each->stream().Send(lost);
        each->leases.clear();
      }
    }
    cluster.Advance(seconds(2));
    EXPECT_THAT(liar.rejected, HasSubstr("step 0 "));
    cluster.Disconnect(liar);
    ScriptedWorker* worker = &honest;
    if (comes_back) {
      cluster.Disconnect(honest);
      cluster.Disconnect(other);
      worker =
          &cluster.Join({.index = 1, .incarnation = 2, .timeline = timeline, .held_steps = {held}});
      cluster.Advance(seconds(1));
      EXPECT_THAT(worker->leased, testing::Contains(0));
    } else {
      EXPECT_TRUE(honest.leased.contains(0) || other.leased.contains(0));
    }
    for (int i = 0; i < 100 && !worker->job_done; ++i) {
      for (ScriptedWorker* each : {&honest, &other, worker}) {
        if (!each->leases.empty() && (!comes_back || each == worker)) cluster.FinishStep(*each);
      }
      cluster.Advance(seconds(1));
    }
    EXPECT_TRUE(worker->job_done);
    EXPECT_THAT(worker->rejected, IsEmpty());
    EXPECT_THAT(cluster.StoredSteps(), testing::Contains(26));
  }
}

TEST(TrainingRoundsTest, UnderAsyncNoStepIsAlreadyApplied) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  worker.ReportAlreadyApplied(0);
  cluster.Settle();
  EXPECT_THAT(worker.rejected, AllOf(HasSubstr("async"), HasSubstr("rounds")));
}

TEST(TrainingRoundsTest, AStopCompletesTheRoundThatIsBegun) {
  ScriptedCluster cluster({.rounds_of = 4});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishStep(worker);
  worker.begun_below = 1;
  cluster.run->Stop();
  cluster.Settle();
  cluster.FinishAll(worker);
  EXPECT_THAT(worker.leased, ElementsAre(0, 1, 2, 3)) << "and nothing more";
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(4));
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_THAT(*cluster.over, StoppedWithCheckpoint(cluster));
}

TEST(TrainingRoundsTest, AStopBetweenRoundsBeginsNone) {
  ScriptedCluster cluster({.rounds_of = 4});
  ScriptedWorker& worker = cluster.Join(0);
  DoSteps(cluster, worker, 4);
  worker.begun_below = 4;
  cluster.run->Stop();
  cluster.Settle();
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(4));
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_THAT(*cluster.over, StoppedWithCheckpoint(cluster));
}

// All leave at once, and nobody is left to do the rest of the round.
TEST(TrainingRoundsTest, AStopThatNobodyIsLeftForKeepsTheRoundsThatAreWhole) {
  ScriptedCluster cluster({.ps = 2, .checkpoint = "{}", .rounds_of = 4});
  ScriptedWorker& worker = cluster.Join(0);
  DoSteps(cluster, worker, 5);
  EXPECT_THAT(worker.leases, testing::Contains(5));
  const size_t held = worker.leases.size();
  worker.SendDraining();
  cluster.run->Stop();
  cluster.Settle();
  for (size_t i = 0; i < held && !worker.leases.empty(); ++i) cluster.FinishStep(worker);
  worker.Leave("SIGTERM");
  cluster.Disconnect(worker);
  cluster.Advance(seconds(10));
  EXPECT_EQ(cluster.ps[0]->fences_rejected, 0u);
  const uint64_t whole = cluster.ps[0]->rounds->StartAt(*cluster.ps[0]->applied.rbegin() + 1);
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(whole));
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_THAT(*cluster.over, StoppedWithCheckpoint(cluster));
}

// The last step of the round is applied on one ps, and whoever pushed it is gone.
TEST(TrainingRoundsTest, AStopThatARoundIsHalfAppliedForSaysWhoCouldCompleteIt) {
  ScriptedCluster cluster({.ps = 2, .checkpoint = "{}", .rounds_of = 4});
  ScriptedWorker& worker = cluster.Join(0);
  DoSteps(cluster, worker, 7);
  cluster.ps[0]->applied.insert(7);
  worker.Leave("SIGTERM");
  cluster.Disconnect(worker);
  testing::internal::CaptureStderr();
  cluster.run->Stop();
  cluster.Advance(seconds(30));
  FlushLog(std::chrono::minutes(1));
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, AllOf(HasSubstr("too late"), testing::Not(HasSubstr("make room"))));
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_THAT(*cluster.over, FailsWith(absl::StatusCode::kCancelled, {" 7 steps "}));
  EXPECT_THAT(cluster.StoredSteps(), IsEmpty());
}

// Nobody has said how many examples there are, so that it is not known where rounds end: but the ps
// know how many steps they have applied.
TEST(TrainingRoundsTest, AStopAfterATakeoverThatNoWorkerSawKeepsTheRoundsThatAreWhole) {
  ScriptedCluster cluster({.ps = 2, .checkpoint = "{}", .rounds_of = 4});
  DoSteps(cluster, cluster.Join(0), 6);
  cluster.StartCoordinator();
  cluster.Advance(seconds(2));
  cluster.run->Stop();
  cluster.Advance(seconds(10));
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(4));
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_THAT(*cluster.over, StoppedWithCheckpoint(cluster));
}

TEST(TrainingRoundsTest, ACheckpointThatIsAskedForIsOfWholeRounds) {
  ScriptedCluster cluster({.checkpoint = "{}", .rounds_of = 4});
  ScriptedWorker& worker = cluster.Join(0);
  DoSteps(cluster, worker, 5);
  OperatorRequest checkpoint = OperatorRequest::Checkpoint(&cluster);
  EXPECT_FALSE(checkpoint.answered());
  DoSteps(cluster, worker, 8);
  EXPECT_TRUE(checkpoint.status().ok()) << checkpoint.status();
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(8));
}

TEST(TrainingRoundsTest, ATakeoverGoesOnWithTheRoundThatIsUnderWay) {
  ScriptedCluster cluster({.ps = 2, .rounds_of = 4});
  ScriptedWorker& worker = cluster.Join(0);
  DoSteps(cluster, worker, 5);
  // In on one ps alone.
  cluster.ps[0]->applied.insert(6);
  cluster.StartCoordinator();
  ScriptedWorker& again = cluster.Join({.index = 0, .incarnation = 9});
  cluster.FinishAll(again);
  EXPECT_THAT(again.leased, testing::Contains(6));
  EXPECT_THAT(again.leased, testing::Not(testing::Contains(4)));
  cluster.Advance(seconds(1));
  EXPECT_THAT(cluster.StoredSteps(), testing::Contains(26));
}

// A push that nobody checked has brought a chunk to a version at which no round begins.
TEST(TrainingRoundsTest, AVersionOfNoRoundGivesWayToTheCheckpoint) {
  ScriptedCluster cluster({.checkpoint = R"({"every_steps": 4})", .rounds_of = 4});
  ScriptedWorker& first = cluster.Join(0);
  while (cluster.StoredSteps().empty()) cluster.FinishStep(first);
  cluster.ps[0]->updates = 5;
  cluster.StartCoordinator();
  ScriptedWorker& worker = cluster.Join({.index = 0, .incarnation = 9});
  cluster.Advance(seconds(1));
  EXPECT_FALSE(cluster.over.has_value()) << Over(cluster);
  ASSERT_EQ(cluster.ps[0]->loads.size(), 2u);
  EXPECT_THAT(cluster.ps[0]->loads[1].checkpoint(), HasSubstr("/checkpoints/step-"));
  cluster.FinishAll(worker);
  cluster.Advance(seconds(1));
  EXPECT_THAT(cluster.StoredSteps(), testing::Contains(26));
}

TEST(TrainingRoundsTest, APsThatGoesByAnotherPlanIsLoadedAnew) {
  ScriptedCluster cluster({.rounds_of = 4});
  cluster.Join(0);
  cluster.ps[0]->training_examples = 100;
  cluster.Advance(seconds(2));
  EXPECT_FALSE(cluster.over.has_value()) << Over(cluster);
  EXPECT_EQ(cluster.ps[0]->loads.size(), 2u);
  EXPECT_EQ(cluster.ps[0]->training_examples, 200u) << "as it is told";
}

// 10 steps end within what would be a round of a longer job.
TEST(TrainingRoundsTest, AJobThatEndedWithinARoundIsNotMadeLonger) {
  TemporaryDirectory directory;
  ScriptedCluster::Options options = {.rounds_of = 4, .steps = 10, .directory = directory.path()};
  {
    ScriptedCluster cluster(options);
    ScriptedWorker& worker = cluster.Join(0);
    DoSteps(cluster, worker, 10);
    cluster.Advance(seconds(1));
    EXPECT_THAT(cluster.StoredSteps(), testing::Contains(10));
  }
  std::filesystem::remove_all(directory.path() + "/run/model");
  options.steps = 12;
  options.ps_incarnation = 2;
  ScriptedCluster cluster(options);
  cluster.Join(0);
  cluster.Advance(seconds(6));
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_THAT(*cluster.over, FailsWith(absl::StatusCode::kFailedPrecondition,
                                       {"10 steps", "8 to 11", "$.steps to 10", "--run_dir"}));
  // The ps have it loaded now: whoever finds it there looks for a checkpoint, which is that one.
  cluster.over.reset();
  cluster.StartCoordinator();
  cluster.Join({.index = 0, .incarnation = 9});
  EXPECT_EQ(cluster.ps[0]->loads.size(), 2u);
  cluster.Advance(seconds(6));
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_THAT(*cluster.over,
              FailsWith(absl::StatusCode::kFailedPrecondition, {"step-000000000010", "8 to 11"}));
}

}  // namespace
}  // namespace shoal
