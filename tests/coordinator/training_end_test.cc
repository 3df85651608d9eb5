#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_format.h"
#include "coordinator/training_run.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/common/checkpoint/small_checkpoint.h"
#include "tests/coordinator/scripted_cluster.h"

namespace shoal {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr uint64_t kSteps = 26;

// --- Stop ----------------------------------------------------------------------------------------

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

// It was begun by a worker that has died, and leased again to one that had not come to it.
TEST(TrainingRunTest, AStepThatAPsKnowsIsNotTakenBack) {
  ScriptedCluster cluster({.ps = 2});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.ps[1]->applied.insert(1);
  worker.begun_below = 1;
  cluster.run->Stop();
  cluster.Settle();
  cluster.FinishAll(worker);
  EXPECT_GT(cluster.ps[1]->fences_refused, 0u);
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(2));
  EXPECT_TRUE(cluster.over.has_value());
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

// A cut lies ahead of the steps; what is still missing of it has to be computed.
TEST(TrainingRunTest, AStopCompletesTheCutInProgress) {
  ScriptedCluster cluster({.checkpoint = R"({"every_steps": 5})"});
  ScriptedWorker& worker = cluster.Join(0);
  EXPECT_THAT(cluster.ps[0]->CutSteps(), ElementsAre(5));
  cluster.run->Stop();
  cluster.Settle();
  cluster.FinishAll(worker);
  EXPECT_THAT(worker.leased, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(5));
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
  EXPECT_THAT(std::string(cluster.over->message()), HasSubstr("the checkpoint is written"));
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
  EXPECT_THAT(std::string(cluster.over->message()), HasSubstr("the checkpoint is written"));
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(1));
}

// As where everybody is stopped at once.
TEST(TrainingRunTest, AStopWaitsForADrainingWorker) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  worker.SayDraining();
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
  EXPECT_THAT(std::string(cluster.over->message()), HasSubstr("the checkpoint is written"));
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
  EXPECT_THAT(std::string(cluster.over->message()), HasSubstr("the checkpoint is written"));
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
  EXPECT_THAT(std::string(cluster.over->message()),
              AllOf(HasSubstr("without a checkpoint of the last steps: gave up waiting for "),
                    HasSubstr("step 1 is with worker 0")));
}

TEST(TrainingRunTest, AStopGivesUpAPsThatDoesNotAnswer) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.ps[0]->accepts_fences = false;
  cluster.run->Stop();
  cluster.FinishAll(worker);
  cluster.Advance(seconds(16));
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_THAT(std::string(cluster.over->message()), HasSubstr("ps 0 to accept it"));
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

// --- A ps leaves ---------------------------------------------------------------------------------

TEST(TrainingRunTest, APsThatLeavesTakesACheckpointOfAllThatIsLeased) {
  ScriptedCluster cluster({.ps = 2});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishStep(worker);
  cluster.ps[1]->Leave();
  cluster.Settle();
  EXPECT_FALSE(cluster.ps[1]->stopped);
  cluster.FinishAll(worker);
  EXPECT_THAT(worker.leased, ElementsAre(0, 1, 2)) << "what follows would be lost";
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(3));
  EXPECT_TRUE(cluster.ps[1]->stopped);
  EXPECT_FALSE(cluster.ps[0]->stopped);
  EXPECT_FALSE(cluster.over.has_value());

  cluster.ps[1]->stopped = false;
  cluster.Advance(seconds(2));
  EXPECT_FALSE(cluster.ps[1]->stopped) << "it is told once";
  cluster.ps[1]->Restart();
  cluster.Advance(seconds(2));
  EXPECT_THAT(worker.timelines, testing::SizeIs(2));
  cluster.FinishStep(worker);
  EXPECT_EQ(cluster.run->Status().steps_done(), 4u) << "its successor has lost nothing";
}

TEST(TrainingRunTest, APsThatSaysItLeavesAndStaysHoldsNobodyUp) {
  ScriptedCluster cluster({.ps = 2});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.ps[1]->Leave();
  cluster.Settle();
  cluster.FinishAll(worker);
  EXPECT_TRUE(cluster.ps[1]->stopped);
  cluster.Advance(seconds(9));
  EXPECT_THAT(worker.leases, IsEmpty());
  cluster.Advance(seconds(2));
  EXPECT_THAT(worker.leases, Not(IsEmpty()));
}

TEST(TrainingRunTest, APsThatLeavesDoesNotWaitForADiskThatIsFull) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.ps[0]->write_error = "no space";
  cluster.ps[0]->Leave();
  cluster.Settle();
  cluster.FinishAll(worker);
  EXPECT_THAT(cluster.StoredSteps(), IsEmpty());
  EXPECT_TRUE(cluster.ps[0]->stopped);
}

TEST(TrainingRunTest, APsThatLeavesBeforeTrainingBeganMayGoAtOnce) {
  ScriptedCluster cluster({});
  cluster.Advance(seconds(1));
  cluster.ps[0]->Leave();
  cluster.Settle();
  EXPECT_TRUE(cluster.ps[0]->stopped);
  cluster.ps[0]->Restart();
  cluster.Advance(seconds(2));
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishStep(worker);
  EXPECT_EQ(cluster.run->Status().steps_done(), 1u);
}

TEST(TrainingRunTest, APsThatLeavesAndAStopShareACheckpoint) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishStep(worker);
  cluster.ps[0]->Leave();
  cluster.Settle();
  cluster.run->Stop();
  cluster.Settle();
  cluster.FinishAll(worker);
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(3));
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_TRUE(absl::IsCancelled(*cluster.over)) << *cluster.over;
}

// Its answer to the Stop that let it go is not one to the Stop at the end.
TEST(TrainingRunTest, APsThatLeavesWhileTheModelIsSavedDoesNotMakeTheJobDone) {
  ScriptedCluster cluster({.epochs = 1});
  ScriptedWorker& worker = cluster.Join(0);
  ASSERT_TRUE(MakeDirectories(cluster.run_dir() + "/model").ok());
  WriteAll(cluster.run_dir() + "/model/thesis.txt", "in the way");
  for (int step = 0; step < 13; ++step) {
    cluster.loop.set_hold_offloads(step == 12);
    cluster.FinishStep(worker);
  }
  while (cluster.run->Status().phase() != "finished") {
    ASSERT_TRUE(cluster.loop.RunOneOffloaded());
    cluster.Settle();
  }
  cluster.ps[0]->SayStopping();
  cluster.Settle();
  cluster.loop.set_hold_offloads(false);
  cluster.Advance(seconds(10));
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_FALSE(cluster.over->ok()) << "the model could not be saved";
}

TEST(TrainingRunTest, APsThatLeavesWithoutWorkersKeepsWhatIsDone) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishStep(worker);
  cluster.Disconnect(worker);
  cluster.ps[0]->Leave();
  cluster.Advance(std::chrono::minutes(1));
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(1));
  EXPECT_TRUE(cluster.ps[0]->stopped);
}

// --- The end -------------------------------------------------------------------------------------

TEST(TrainingRunTest, WorkersAreDismissedBeforeThePs) {
  ScriptedCluster cluster({.ps = 2});
  ScriptedWorker& worker = cluster.Join(0);
  ScriptedWorker& other = cluster.Join(1);
  cluster.FinishAll(worker);
  cluster.FinishAll(other);
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(kSteps));
  EXPECT_TRUE(std::filesystem::exists(cluster.run_dir() + "/model/model.safetensors"));
  EXPECT_EQ(cluster.run->Status().phase(), "finished");
  EXPECT_TRUE(worker.job_done);
  EXPECT_TRUE(other.job_done);
  cluster.Disconnect(worker);
  EXPECT_FALSE(cluster.ps[0]->stopped) << "the other is still there";
  cluster.ps[1]->answers_stop = false;
  cluster.Disconnect(other);
  EXPECT_TRUE(cluster.ps[0]->stopped);
  EXPECT_TRUE(cluster.ps[1]->stopped);
  EXPECT_FALSE(cluster.over.has_value()) << "it waits for both";
  cluster.Advance(seconds(5));
  ASSERT_TRUE(cluster.over.has_value()) << "one that does not answer counts as stopped";
  EXPECT_TRUE(cluster.over->ok()) << *cluster.over;
}

TEST(TrainingRunTest, NobodyIsDismissedBeforeTheModelIsSaved) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.loop.set_hold_offloads(true);
  while (cluster.StoredSteps().empty()) {
    cluster.FinishAll(worker);
    cluster.loop.RunOneOffloaded();
    cluster.Settle();
  }
  // The last checkpoint is there, the model is not.
  ScriptedWorker& late = cluster.Join(1);
  EXPECT_FALSE(late.job_done) << "it may not be the end yet";
  cluster.Disconnect(late);
  cluster.Disconnect(worker);
  cluster.Advance(seconds(6));
  EXPECT_FALSE(cluster.ps[0]->stopped);
  EXPECT_FALSE(cluster.over.has_value());
  cluster.loop.set_hold_offloads(false);
  cluster.Settle();
  EXPECT_TRUE(std::filesystem::exists(cluster.run_dir() + "/model/model.safetensors"));
  cluster.Settle();
  EXPECT_TRUE(cluster.ps[0]->stopped);
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_TRUE(cluster.over->ok()) << *cluster.over;
}

TEST(TrainingRunTest, ASilentWorkerDoesNotHoldTheEndUp) {
  ScriptedCluster cluster({});
  cluster.FinishAll(cluster.Join(0));
  cluster.Advance(seconds(4));
  EXPECT_FALSE(cluster.ps[0]->stopped);
  cluster.Advance(seconds(2));
  EXPECT_TRUE(cluster.ps[0]->stopped);
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_TRUE(cluster.over->ok());
}

TEST(TrainingRunTest, ASuccessorOfAFinishedJobDoesTheRest) {
  ScriptedCluster cluster({});
  cluster.FinishAll(cluster.Join(0));
  std::filesystem::remove_all(cluster.run_dir() + "/model");
  cluster.StartCoordinator();
  EXPECT_TRUE(std::filesystem::exists(cluster.run_dir() + "/model/model.safetensors"));
  EXPECT_FALSE(cluster.ps[0]->stopped) << "workers may still come";
  ScriptedWorker& worker = cluster.Join(0);
  EXPECT_TRUE(worker.job_done);
  EXPECT_THAT(worker.leased, IsEmpty());
  cluster.Advance(seconds(6));
  EXPECT_TRUE(cluster.ps[0]->stopped);
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_TRUE(cluster.over->ok());
}

TEST(TrainingRunTest, AFinishedJobMayTrainLonger) {
  const TemporaryDirectory directory;
  {
    ScriptedCluster cluster({.directory = directory.path()});
    cluster.FinishAll(cluster.Join(0));
    ASSERT_EQ(cluster.run->Status().phase(), "finished");
  }
  {
    ScriptedCluster cluster({.epochs = 3, .directory = directory.path()});
    ScriptedWorker& worker = cluster.Join(0);
    EXPECT_THAT(worker.leases, ElementsAre(kSteps, kSteps + 1));
    cluster.FinishAll(worker);
    EXPECT_EQ(cluster.run->Status().phase(), "finished");
    EXPECT_EQ(cluster.run->Status().history_size(), 3);
  }
  ScriptedCluster shorter({.epochs = 1, .directory = directory.path()});
  shorter.Join(0);
  ASSERT_TRUE(shorter.over.has_value());
  EXPECT_EQ(shorter.over->code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(shorter.over->message()),
              AllOf(HasSubstr("has the first 39 steps"), HasSubstr("only 13 now")));
}

TEST(TrainingRunTest, WhatIsNotFiniteIsNotSavedAndGoodCheckpointsStay) {
  const TemporaryDirectory directory;
  {
    ScriptedCluster cluster(
        {.checkpoint = R"({"every_steps": 4, "keep": 1})", .directory = directory.path()});
    ScriptedWorker& worker = cluster.Join(0);
    while (cluster.StoredSteps().size() < 2) cluster.FinishStep(worker);
    const std::vector<uint64_t> finite = cluster.StoredSteps();
    worker.loss = NAN;
    cluster.ps[0]->value = NAN;
    cluster.FinishAll(worker);
    EXPECT_THAT(worker.job_failure, HasSubstr("no model is saved"));
    cluster.Disconnect(worker);
    ASSERT_TRUE(cluster.over.has_value());
    EXPECT_EQ(cluster.over->code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(
        std::string(cluster.over->message()),
        AllOf(HasSubstr("no model is saved"), HasSubstr(absl::StrFormat("step-%012d", finite[0]))));
    EXPECT_FALSE(std::filesystem::exists(cluster.run_dir() + "/model"));
    EXPECT_THAT(cluster.StoredSteps(), ElementsAre(kSteps, finite[0], finite[1]));
  }
  // The next start goes on from what is finite.
  ScriptedCluster again({.directory = directory.path()});
  ScriptedWorker& worker = again.Join(0);
  ASSERT_FALSE(worker.leases.empty());
  EXPECT_THAT(again.ps[0]->loads.back().checkpoint(), Not(HasSubstr("step-000000000026")));
  again.FinishAll(worker);
  EXPECT_EQ(again.run->Status().phase(), "finished");
  EXPECT_TRUE(std::filesystem::exists(again.run_dir() + "/model"));
}

// --- The run directory ---------------------------------------------------------------------------

TEST(TrainingRunTest, ASecondCoordinatorWithOtherPsIsRefused) {
  const TemporaryDirectory directory;
  ScriptedCluster first({.directory = directory.path()});
  ScriptedWorker& worker = first.Join(0);
  first.FinishStep(worker);
  ScriptedCluster second(
      {.directory = directory.path(), .ps_incarnation = 100, .others_live = true});
  EXPECT_THAT(second.run->Status().waiting(), Contains(HasSubstr("the coordinator at chief:1")));
  for (int i = 0; i < 15 && !second.over.has_value(); ++i) {
    first.Advance(seconds(1));
    second.Advance(seconds(1));
  }
  ASSERT_TRUE(second.over.has_value());
  EXPECT_EQ(second.over->code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.over->message()), HasSubstr("is in use by the coordinator"));
  EXPECT_THAT(second.ps[0]->loads, IsEmpty());
  EXPECT_FALSE(first.over.has_value());
  // Once the first has left, there is no waiting.
  first.run->Stop();
  first.FinishAll(worker);
  ASSERT_TRUE(first.over.has_value());
  second.StartCoordinator();
  EXPECT_THAT(second.ps[0]->loads, SizeIs(1));
}

TEST(TrainingRunTest, AModelThatCannotBeSavedIsAFailure) {
  ScriptedCluster cluster({});
  ASSERT_TRUE(MakeDirectories(cluster.run_dir() + "/model").ok());
  WriteAll(cluster.run_dir() + "/model/thesis.txt", "precious");
  cluster.FinishAll(cluster.Join(0));
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_THAT(std::string(cluster.over->message()), HasSubstr("thesis.txt"));
  EXPECT_EQ(cluster.run->Status().phase(), "failed");
  EXPECT_THAT(cluster.run->Status().error(), HasSubstr("thesis.txt"));
}

TEST(TrainingRunTest, WritesTheHistory) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.Advance(seconds(2));
  cluster.FinishAll(worker);
  EXPECT_EQ(ReadAll(cluster.run_dir() + "/history.csv"),
            "epoch,loss,accuracy,val_loss,val_accuracy,seconds,examples_per_second\n"
            "1,1,0.5,,,2.000,65.0\n"
            "2,1,0.5,,,0.000,0.0\n");
}

}  // namespace
}  // namespace shoal
