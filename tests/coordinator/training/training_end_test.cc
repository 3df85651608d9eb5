#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_format.h"
#include "common/run/history.h"
#include "coordinator/training_run.h"
#include "tests/common/base/fails_with.h"
#include "tests/common/base/file_content.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/common/checkpoint/small_checkpoint.h"
#include "tests/coordinator/scripted_cluster.h"

namespace shoal {
namespace {

using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr uint64_t kStepsToEnd = 26;

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
  cluster.ps[0]->SendStopping();
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
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(kStepsToEnd));
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
  ScriptedWorker& worker = cluster.Connect({.index = 0});
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
    EXPECT_THAT(worker.leases, ElementsAre(kStepsToEnd, kStepsToEnd + 1));
    cluster.FinishAll(worker);
    EXPECT_EQ(cluster.run->Status().phase(), "finished");
    EXPECT_EQ(cluster.run->Status().history_size(), 3);
  }
  ScriptedCluster shorter({.epochs = 1, .directory = directory.path()});
  EXPECT_THAT(shorter.Join(0).job_failure, HasSubstr(" 39 steps"));
  shorter.Advance(seconds(6));
  ASSERT_TRUE(shorter.over.has_value());
  EXPECT_THAT(*shorter.over,
              FailsWith(absl::StatusCode::kFailedPrecondition, {" 39 steps", " 13 "}));
}

TEST(TrainingRunTest, ValuesNotFiniteAreNotSavedAndGoodCheckpointsStay) {
  const TemporaryDirectory directory;
  {
    ScriptedCluster cluster({.workers = 1,
                             .checkpoint = R"({"every_steps": 4, "keep": 1})",
                             .directory = directory.path()});
    ScriptedWorker& worker = cluster.Join(0);
    while (cluster.StoredSteps().size() < 2) cluster.FinishStep(worker);
    const std::vector<uint64_t> finite = cluster.StoredSteps();
    worker.loss = NAN;
    cluster.ps[0]->value = NAN;
    cluster.FinishAll(worker);
    EXPECT_THAT(worker.job_failure, HasSubstr(absl::StrFormat("step-%012d", finite[0])));
    cluster.Disconnect(worker);
    ASSERT_TRUE(cluster.over.has_value());
    EXPECT_THAT(*cluster.over,
                FailsWith(absl::StatusCode::kDataLoss, {absl::StrFormat("step-%012d", finite[0])}));
    EXPECT_FALSE(std::filesystem::exists(cluster.run_dir() + "/model"));
    EXPECT_THAT(cluster.StoredSteps(), ElementsAre(kStepsToEnd, finite[0], finite[1]));
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

// No supervisor restarts the coordinator after 78. The workers would look for it for ever.
TEST(TrainingRunTest, APsThatCannotHoldTheModelEndsTheJobForTheWorkers) {
  ScriptedCluster cluster({.workers = 1});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.ps[0]->answers_loads = false;
  cluster.ps[0]->Restart();
  cluster.Advance(seconds(2));
  EXPECT_FALSE(worker.job_done);
  proto::ControlReply reply;
  reply.mutable_load_failed()->set_term(cluster.run->Status().term());
  reply.mutable_load_failed()->set_reason("no room for 3 TiB");
  cluster.network.Newest("ps-0:1").Send(reply);
  cluster.Settle();
  EXPECT_TRUE(worker.job_done);
  EXPECT_THAT(worker.job_failure, HasSubstr("no room for 3 TiB"));
  EXPECT_FALSE(cluster.over.has_value()) << "the worker has not gone";
  cluster.Disconnect(worker);
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_THAT(*cluster.over, FailsWith(absl::StatusCode::kFailedPrecondition, {"3 TiB"}));
  EXPECT_FALSE(cluster.ps[0]->stopped);
}

// --- The run directory ---------------------------------------------------------------------------

TEST(TrainingRunTest, ASecondCoordinatorWithOtherPsIsRejected) {
  const TemporaryDirectory directory;
  ScriptedCluster first({.directory = directory.path()});
  ScriptedWorker& worker = first.Join(0);
  first.FinishStep(worker);
  ScriptedCluster second(
      {.directory = directory.path(), .ps_incarnation = 100, .others_live = true});
  EXPECT_THAT(second.run->Status().waiting(), Contains(HasSubstr("chief:1")));
  for (int i = 0; i < 15 && !second.over.has_value(); ++i) {
    first.Advance(seconds(1));
    second.Advance(seconds(1));
  }
  ASSERT_TRUE(second.over.has_value());
  EXPECT_THAT(*second.over, FailsWith(absl::StatusCode::kFailedPrecondition, {"chief:1"}));
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
  EXPECT_EQ(FileContent(cluster.run_dir() + "/history.csv"),
            "epoch,loss,accuracy,val_loss,val_accuracy,seconds,examples_per_second,examples\n"
            "1,1,0.5,,,2.000,100.0,200\n"
            "2,1,0.5,,,0.000,0.0,200\n");
}

// Six steps before the stop or the crash, seven after it.
TEST(TrainingRunTest, AnEpochThatIsGoneOnWithHasTheFiguresOfAllItsSteps) {
  for (const bool killed : {false, true}) {
    SCOPED_TRACE(killed);
    ScriptedCluster cluster({.checkpoint = R"({"every_steps": 6})"});
    ScriptedWorker& worker = cluster.Join(0);
    cluster.Advance(seconds(3));
    worker.loss = 13;
    for (int i = 0; i < 6; ++i) cluster.FinishStep(worker);
    ASSERT_THAT(cluster.StoredSteps(), ElementsAre(6));
    // Of what comes after the checkpoint the ps that is lost takes it along.
    worker.loss = 1000;
    if (killed) cluster.FinishStep(worker);
    cluster.ps[0]->Restart();
    if (killed) {
      cluster.Advance(seconds(5));
    } else {
      cluster.StartCoordinator();
    }
    ScriptedWorker& again = killed ? worker : cluster.Join(0);
    again.loss = 0;
    cluster.FinishAll(again);
    const std::vector<proto::EpochResult> epochs =
        ReadHistory(cluster.run_dir() + "/history.csv").value_or(History()).epochs;
    ASSERT_EQ(epochs.size(), 2u);
    EXPECT_NEAR(epochs[0].loss(), 13 * 96 / 200.0, 1e-6);
    EXPECT_EQ(epochs[0].examples(), 200u);
    EXPECT_GE(epochs[0].seconds(), 3);
  }
}

// The ps have applied the last step of a cut before its worker says that it is done.
TEST(TrainingRunTest, AReportThatComesAMomentLateIsInTheFiguresOfTheEpoch) {
  ScriptedCluster cluster({.checkpoint = R"({"every_steps": 6})"});
  ScriptedWorker& worker = cluster.Join(0);
  for (int i = 0; i < 5; ++i) cluster.FinishStep(worker);
  cluster.ps[0]->applied.insert(5);
  cluster.Settle();
  EXPECT_THAT(cluster.StoredSteps(), IsEmpty());
  cluster.Advance(std::chrono::milliseconds(50));
  cluster.FinishStep(worker);
  cluster.Advance(std::chrono::milliseconds(50));
  ASSERT_THAT(cluster.StoredSteps(), ElementsAre(6));
  const auto stored = CheckpointStore(cluster.run_dir() + "/checkpoints").List(nullptr);
  ASSERT_TRUE(stored.ok());
  EXPECT_EQ(stored->front().manifest.epoch_sums.examples, 96u);
}

// Of the steps that a coordinator had heard of alone, nobody knows what they came to.
TEST(TrainingRunTest, TheHistorySaysOfHowManyExamplesItsFiguresAre) {
  ScriptedCluster cluster({.checkpoint = R"({"every_steps": 6})"});
  ScriptedWorker& worker = cluster.Join(0);
  for (int i = 0; i < 8; ++i) cluster.FinishStep(worker);
  ASSERT_THAT(cluster.StoredSteps(), ElementsAre(6));
  cluster.StartCoordinator();
  cluster.FinishAll(cluster.Join(0));
  const std::vector<proto::EpochResult> epochs =
      ReadHistory(cluster.run_dir() + "/history.csv").value_or(History()).epochs;
  ASSERT_EQ(epochs.size(), 2u);
  EXPECT_EQ(epochs[0].examples(), 168u);
  EXPECT_EQ(epochs[1].examples(), 200u);
}

}  // namespace
}  // namespace shoal
