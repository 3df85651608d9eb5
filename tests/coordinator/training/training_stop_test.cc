#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/log/logging.h"
#include "coordinator/training_run.h"
#include "tests/common/base/fails_with.h"
#include "tests/common/base/file_content.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/common/checkpoint/small_checkpoint.h"
#include "tests/coordinator/operators/operator_request.h"
#include "tests/coordinator/scripted_cluster.h"
#include "tests/coordinator/stopped_with_checkpoint.h"

namespace shoal {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

TEST(TrainingRunTest, StoppedBeforeItBegan) {
  ScriptedCluster cluster({});
  cluster.run->Stop();
  cluster.Settle();
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_TRUE(absl::IsCancelled(*cluster.over)) << *cluster.over;
  cluster.run->Stop();
  cluster.Advance(seconds(10));
}

TEST(TrainingRunTest, AnOrderlyStopCutsWhenTheLeasedStepsAreDone) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishStep(worker);
  cluster.run->Stop();
  cluster.run->Stop();
  cluster.Settle();
  EXPECT_EQ(cluster.run->Status().phase(), "stopping");
  EXPECT_FALSE(cluster.over.has_value());
  cluster.FinishAll(worker);
  EXPECT_THAT(worker.leased, ElementsAre(0, 1, 2)) << "nothing new is begun";
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(3));
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_TRUE(absl::IsCancelled(*cluster.over)) << *cluster.over;
  EXPECT_FALSE(cluster.ps[0]->stopped) << "the job is not over";
}

// With long steps it is a long time until all that is leased is done.
TEST(TrainingRunTest, AStopTakesBackStepsThatAreNotBegun) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  ScriptedWorker& other = cluster.Join(1);
  cluster.FinishStep(worker);
  cluster.FinishStep(other);
  EXPECT_THAT(worker.leases, ElementsAre(1, 4));
  EXPECT_THAT(other.leases, ElementsAre(3, 5));
  worker.begun_below = 2;
  other.begun_below = 4;
  cluster.run->Stop();
  cluster.Settle();
  EXPECT_FALSE(worker.halted || other.halted);
  EXPECT_THAT(worker.leases, ElementsAre(1));
  EXPECT_THAT(other.leases, ElementsAre(3)) << "begun, but not done";
  cluster.FinishAll(worker);
  cluster.FinishAll(other);
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(4));
  EXPECT_TRUE(cluster.over.has_value());
}

TEST(TrainingRunTest, AStopDoesNotWaitLongForHowFarAWorkerIs) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  ScriptedWorker& other = cluster.Join(1);
  worker.begun_below = 1;
  other.answers_halt = false;
  cluster.run->Stop();
  cluster.Settle();
  EXPECT_TRUE(worker.halted) << "the other may have begun what is above its steps";
  cluster.Advance(seconds(2));
  EXPECT_FALSE(worker.halted);
  cluster.FinishAll(worker);
  cluster.FinishAll(other);
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(4));
  EXPECT_TRUE(cluster.over.has_value());
}

TEST(TrainingRunTest, AStopDoesNotWaitForAWorkerThatGoesInsteadOfSayingHowFarItIs) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  ScriptedWorker& other = cluster.Join(1);
  worker.answers_halt = false;
  other.begun_below = 3;
  cluster.run->Stop();
  cluster.Disconnect(worker);
  EXPECT_FALSE(other.halted);
  cluster.FinishAll(other);
  EXPECT_THAT(other.leased, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(3)) << "3 was not begun";
}

// It was begun by a worker that has died, and leased again to one that had not come to it. The cut
// needs it, and nobody can be asked for it once those that stop as well have left.
TEST(TrainingRunTest, AStepThatALostWorkerHadIsNotTakenBack) {
  ScriptedCluster cluster({.ps = 2});
  ScriptedWorker& lost = cluster.Join(0);
  EXPECT_THAT(lost.leases, ElementsAre(0, 1));
  cluster.ps[1]->applied.insert(1);
  cluster.Disconnect(lost);
  ScriptedWorker& worker = cluster.Join(1);
  EXPECT_THAT(worker.leases, ElementsAre(0, 1));
  worker.begun_below = 1;
  worker.SendDraining();
  cluster.run->Stop();
  cluster.Settle();
  cluster.FinishAll(worker);
  EXPECT_THAT(worker.leased, ElementsAre(0, 1));
  worker.Leave("SIGTERM");
  cluster.Advance(seconds(10));
  EXPECT_EQ(cluster.ps[1]->fences_rejected, 0u);
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(2));
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_THAT(*cluster.over, StoppedWithCheckpoint(cluster));
}

// A successor does not know who had it.
TEST(TrainingRunTest, AStepThatAPsKnowsIsNotTakenBack) {
  ScriptedCluster cluster({.ps = 2});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.ps[1]->applied.insert(1);
  worker.begun_below = 1;
  cluster.run->Stop();
  cluster.Settle();
  cluster.FinishAll(worker);
  EXPECT_GT(cluster.ps[1]->fences_rejected, 0u);
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(2));
  EXPECT_TRUE(cluster.over.has_value());
}

// It has not heard of the take-back, and says that it holds what was taken back.
TEST(TrainingRunTest, AStopGivesNothingBackToAWorkerWhoseStreamBroke) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  ScriptedWorker& other = cluster.Join(1);
  worker.begun_below = 1;
  other.begun_below = 3;
  cluster.run->Stop();
  cluster.Settle();
  EXPECT_THAT(other.leases, ElementsAre(2)) << "3 is taken back";
  cluster.Disconnect(other);
  ScriptedWorker& again = cluster.Connect(
      {.index = 1, .incarnation = 2, .timeline = worker.timeline, .held_steps = {2, 3}});
  again.leases = {2, 3};
  cluster.SendReady(again, 200, 0);
  EXPECT_THAT(again.leases, ElementsAre(2));
  cluster.FinishAll(worker);
  cluster.FinishAll(again);
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(3));
  EXPECT_TRUE(cluster.over.has_value());
}

// What is stored is not written once more.
TEST(TrainingRunTest, AStopThatTakesAllBackWritesNothing) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  const OperatorRequest checkpoint = OperatorRequest::Checkpoint(&cluster);
  cluster.FinishStep(worker);
  cluster.FinishStep(worker);
  ASSERT_THAT(cluster.StoredSteps(), ElementsAre(2));
  ASSERT_THAT(worker.leases, ElementsAre(2, 3));
  worker.begun_below = 2;
  cluster.run->Stop();
  cluster.Settle();
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_THAT(*cluster.over, StoppedWithCheckpoint(cluster));
  EXPECT_THAT(cluster.ps[0]->CutSteps(), ElementsAre(2));
}

TEST(TrainingRunTest, AStopBeforeTheFirstStepIsBegunWritesNothing) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  worker.begun_below = 0;
  cluster.run->Stop();
  cluster.Settle();
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_TRUE(absl::IsCancelled(*cluster.over)) << *cluster.over;
  EXPECT_THAT(cluster.StoredSteps(), testing::IsEmpty());
  EXPECT_THAT(cluster.ps[0]->fences, testing::IsEmpty());
}

TEST(TrainingRunTest, WhenAPsStaysWhatWasTakenBackIsLeasedAnew) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  worker.begun_below = 1;
  for (int time = 0; time < 2; ++time) {
    cluster.ps[0]->Leave();
    cluster.Settle();
    EXPECT_THAT(worker.leases, testing::SizeIs(1));
    cluster.FinishAll(worker);
    cluster.Advance(seconds(11));
    EXPECT_THAT(worker.leases, testing::SizeIs(2)) << time;
    worker.begun_below = worker.leases.front() + 1;
  }
}

// A cut lies ahead of the steps: a stop waits for none that nobody has begun.
TEST(TrainingRunTest, AStopGivesUpACutThatLiesAhead) {
  ScriptedCluster cluster({.checkpoint = R"({"every_steps": 5})"});
  ScriptedWorker& worker = cluster.Join(0);
  EXPECT_THAT(cluster.ps[0]->CutSteps(), ElementsAre(5));
  testing::internal::CaptureStderr();
  cluster.run->Stop();
  cluster.Settle();
  cluster.FinishAll(worker);
  FlushLog(seconds(10));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), Not(HasSubstr(" W ")))
      << "`shoal train` shows warnings, and this stop is in order";
  EXPECT_THAT(worker.leased, ElementsAre(0, 1));
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(2));
  EXPECT_TRUE(cluster.over.has_value());
}

TEST(TrainingRunTest, AStopCompletesTheCutInProgress) {
  ScriptedCluster cluster({.checkpoint = R"({"every_steps": 2})"});
  ScriptedWorker& worker = cluster.Join(0);
  EXPECT_THAT(cluster.ps[0]->CutSteps(), ElementsAre(2));
  cluster.run->Stop();
  cluster.Settle();
  cluster.FinishAll(worker);
  EXPECT_THAT(cluster.ps[0]->CutSteps(), ElementsAre(2)) << "that which there was";
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(2));
  EXPECT_TRUE(cluster.over.has_value());
}

TEST(TrainingRunTest, AStopLeasesAgainWhatALostWorkerHad) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  ScriptedWorker& lost = cluster.Join(1);
  cluster.run->Stop();
  cluster.Disconnect(lost);
  cluster.FinishAll(worker);
  EXPECT_THAT(worker.leased, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(4));
  EXPECT_TRUE(cluster.over.has_value());
}

// Steps that came back and that nobody is left to do are not waited for.
TEST(TrainingRunTest, AStopWithoutWorkersKeepsWhatIsDone) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishStep(worker);
  cluster.Disconnect(worker);
  cluster.run->Stop();
  cluster.Advance(std::chrono::minutes(5));
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_THAT(*cluster.over, StoppedWithCheckpoint(cluster));
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(1));
}

// Its cut had begun above the steps that then came back.
TEST(TrainingRunTest, AStopWhoseLastWorkerLeavesKeepsWhatIsDone) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishStep(worker);
  cluster.run->Stop();
  cluster.Advance(std::chrono::seconds(1));
  cluster.Disconnect(worker);
  cluster.Advance(std::chrono::minutes(5));
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_THAT(*cluster.over, StoppedWithCheckpoint(cluster));
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(1));
}

// As where everybody is stopped at once.
TEST(TrainingRunTest, AStopWaitsForADrainingWorker) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  worker.SendDraining();
  cluster.run->Stop();
  cluster.Advance(seconds(6));
  EXPECT_FALSE(cluster.over.has_value()) << "its steps are its own until it leaves";
  EXPECT_THAT(worker.leased, ElementsAre(0, 1));
  cluster.FinishAll(worker);
  EXPECT_THAT(worker.leased, ElementsAre(0, 1)) << "it is given no more";
  worker.Leave("SIGTERM");
  cluster.Settle();
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(2));
}

TEST(TrainingRunTest, AStopDoesNotWaitForAnEvaluationThatNobodyFinishes) {
  ScriptedCluster cluster({.test_examples = 50});
  ScriptedWorker& worker = cluster.Join(0);
  while (worker.evaluations.empty()) cluster.FinishStep(worker);
  cluster.Disconnect(worker);
  cluster.run->Stop();
  cluster.Advance(std::chrono::minutes(5));
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_THAT(*cluster.over, StoppedWithCheckpoint(cluster));
}

// --- A stop that nobody lets finish ---

// A large step on a slow machine: it is pushed chunk by chunk.
TEST(TrainingRunTest, AStopWaitsWhileChunksAreApplied) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.run->Stop();
  for (int i = 0; i < 5; ++i) {
    cluster.Advance(seconds(10));
    ++cluster.ps[0]->applied_chunks;
  }
  EXPECT_FALSE(cluster.over.has_value());
  cluster.FinishAll(worker);
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_THAT(*cluster.over, StoppedWithCheckpoint(cluster));
}

TEST(TrainingRunTest, AStopGivesUpAWorkerThatStandsStill) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishStep(worker);
  cluster.run->Stop();
  cluster.Advance(seconds(14));
  EXPECT_FALSE(cluster.over.has_value());
  cluster.Advance(seconds(2));
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_TRUE(absl::IsCancelled(*cluster.over)) << *cluster.over;
  EXPECT_THAT(*cluster.over, FailsWith(absl::StatusCode::kCancelled, {"step 1 ", "worker 0"}));
}

// For `time`.
void Compute(ScriptedCluster* cluster, ScriptedWorker* worker, seconds time) {
  for (seconds past{}; past < time; past += seconds(5)) {
    worker->SendComputing();
    cluster->Advance(seconds(5));
  }
}

TEST(TrainingRunTest, AStopWaitsForALongStepThatIsComputed) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  Compute(&cluster, &worker, seconds(30));
  cluster.run->Stop();
  Compute(&cluster, &worker, seconds(50));
  EXPECT_FALSE(cluster.over.has_value());
  EXPECT_THAT(worker.rejected, testing::IsEmpty()) << "nobody else is to begin its steps";
  cluster.FinishAll(worker);
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_THAT(*cluster.over, StoppedWithCheckpoint(cluster));
}

TEST(TrainingRunTest, AStopWaitsForAStepNoLongerThanALease) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.run->Stop();
  Compute(&cluster, &worker, seconds(65));
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_THAT(*cluster.over,
              FailsWith(absl::StatusCode::kCancelled,
                        {"step 0 ", "worker 0", "$.strategy.lease_timeout_seconds"}));
}

TEST(TrainingRunTest, AStopGivesUpAPsThatDoesNotAnswer) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.ps[0]->accepts_fences = false;
  cluster.run->Stop();
  cluster.FinishAll(worker);
  cluster.Advance(seconds(16));
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_THAT(*cluster.over, FailsWith(absl::StatusCode::kCancelled, {"ps 0 "}));
}

// Whoever waits for the run must find all that this one has written.
TEST(TrainingRunTest, TheRunIsGivenBackWhenAllIsWritten) {
  ScriptedCluster cluster({});
  const std::string lease = cluster.run_dir() + "/.lease/1";
  cluster.Settle();
  ASSERT_THAT(FileContent(lease), HasSubstr(R"("held")"));
  cluster.loop.set_hold_offloads(true);
  cluster.loop.Offload(
      Lane::kFiles, [] {}, [] {});
  cluster.run->Stop();
  cluster.Settle();
  EXPECT_THAT(FileContent(lease), HasSubstr(R"("held")"));
  cluster.loop.set_hold_offloads(false);
  cluster.Settle();
  EXPECT_TRUE(cluster.over.has_value());
  EXPECT_THAT(FileContent(lease), HasSubstr(R"("left")"));
}

// As that of a file server that is gone: it takes neither the checkpoint nor the history.
TEST(TrainingRunTest, AStopEndsThoughTheDiskDoesNotAnswer) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishStep(worker);
  cluster.loop.set_hold_offloads(true);
  cluster.loop.set_hold_brief(true);
  cluster.run->Stop();
  cluster.FinishAll(worker);
  cluster.Advance(seconds(40));
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_THAT(*cluster.over, FailsWith(absl::StatusCode::kCancelled, {"without a checkpoint"}));
}

TEST(TrainingRunTest, AStopWaitsForStepsHoweverSlowTheyAre) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  const size_t leased = worker.leases.size();
  ASSERT_GE(leased, 2);
  cluster.run->Stop();
  while (!worker.leases.empty()) {
    cluster.Advance(seconds(12));
    EXPECT_FALSE(cluster.over.has_value());
    cluster.FinishStep(worker);
  }
  cluster.Settle();
  EXPECT_TRUE(cluster.over.has_value());
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(leased));
}

TEST(TrainingRunTest, AStopTriesAgainWhereTheDiskIsFull) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.ps[0]->write_error = "no space left";
  cluster.run->Stop();
  cluster.FinishAll(worker);
  cluster.Advance(seconds(6));
  EXPECT_FALSE(cluster.over.has_value());
  EXPECT_THAT(
      cluster.run->Status().waiting(),
      testing::Contains(AllOf(HasSubstr(" 6 s"), HasSubstr("no space left"), HasSubstr(" 5 s"))));
  cluster.ps[0]->write_error.clear();
  cluster.Advance(seconds(5));
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_THAT(*cluster.over, StoppedWithCheckpoint(cluster));
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(2));
}

TEST(TrainingRunTest, AStopSaysHowManyStepsAFullDiskCosts) {
  ScriptedCluster cluster({.checkpoint = R"({"every_steps": 5})"});
  ScriptedWorker& worker = cluster.Join(0);
  while (cluster.StoredSteps().empty()) cluster.FinishStep(worker);
  cluster.ps[0]->write_error = "no space left";
  testing::internal::CaptureStderr();
  cluster.run->Stop();
  cluster.FinishAll(worker);
  const uint64_t lost = cluster.run->Status().steps_done() - 5;
  cluster.Advance(seconds(20));
  FlushLog(std::chrono::minutes(1));
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr(" " + cluster.run_dir() + "/checkpoints "));
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_THAT(*cluster.over, FailsWith(absl::StatusCode::kCancelled,
                                       {"no space left", absl::StrCat(" ", lost, " steps "),
                                        cluster.run_dir() + "/checkpoints/step-000000000005"}));
  // The ps still have them.
  cluster.ps[0]->write_error.clear();
  cluster.StartCoordinator();
  cluster.Advance(seconds(2));
  EXPECT_EQ(cluster.run->Status().steps_done(), 5 + lost);
}

TEST(TrainingRunTest, AStopWaitsForADiskThatIsSlow) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.run->Stop();
  cluster.Settle();  // the files are laid out
  cluster.loop.set_hold_offloads(true);
  cluster.FinishAll(worker);
  cluster.Advance(seconds(60));
  EXPECT_FALSE(cluster.over.has_value());
  cluster.loop.set_hold_offloads(false);
  cluster.Settle();
  EXPECT_TRUE(cluster.over.has_value());
  EXPECT_THAT(cluster.StoredSteps(), SizeIs(1));
}

TEST(TrainingRunTest, ResumesAfterAStop) {
  const TemporaryDirectory directory;
  {
    ScriptedCluster cluster({.directory = directory.path()});
    ScriptedWorker& worker = cluster.Join(0);
    cluster.run->Stop();
    cluster.FinishAll(worker);
    EXPECT_THAT(cluster.StoredSteps(), ElementsAre(2));
  }
  ScriptedCluster cluster({.directory = directory.path()});
  EXPECT_THAT(cluster.Join(0).leases, ElementsAre(2, 3));
}

}  // namespace
}  // namespace shoal
