// A coordinator that took over live ps, and that no worker has told the number of examples yet.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/common/base/fails_with.h"
#include "tests/common/checkpoint/small_checkpoint.h"
#include "tests/coordinator/operators/operator_request.h"
#include "tests/coordinator/scripted_cluster.h"
#include "tests/coordinator/stopped_with_checkpoint.h"

namespace shoal {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// The values of two steps are in the memory of the ps only, and their coordinator is a new one.
void TakeOverAfterTwoSteps(ScriptedCluster* cluster) {
  ScriptedWorker& worker = cluster->Join(0);
  cluster->FinishStep(worker);
  cluster->FinishStep(worker);
  cluster->StartCoordinator();
  cluster->Advance(seconds(2));
  ASSERT_THAT(cluster->StoredSteps(), IsEmpty());
}

TEST(TrainingTakeoverTest, AStopKeepsWhatIsApplied) {
  ScriptedCluster cluster({.ps = 2});
  TakeOverAfterTwoSteps(&cluster);
  cluster.run->Stop();
  cluster.Advance(seconds(10));
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_THAT(*cluster.over, StoppedWithCheckpoint(cluster));
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(2));
  for (auto& each : cluster.ps) each->Restart();
  cluster.StartCoordinator();
  EXPECT_THAT(cluster.Join(0).leases, ElementsAre(2, 3)) << "a later start goes on from it";
}

// A stop may come before it is known what they hold.
TEST(TrainingTakeoverTest, AStopWaitsForWhatThePsHold) {
  ScriptedCluster cluster({.ps = 2});
  TakeOverAfterTwoSteps(&cluster);
  cluster.ps[1]->answers_claims = false;
  cluster.StartCoordinator();
  cluster.run->Stop();
  cluster.Advance(seconds(5));
  EXPECT_FALSE(cluster.over.has_value());
  cluster.ps[1]->answers_claims = true;
  cluster.Advance(seconds(10));
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(2));
}

TEST(TrainingTakeoverTest, AStopSaysWhatIsLostWhereAPsDoesNotAnswer) {
  ScriptedCluster cluster({.ps = 2});
  TakeOverAfterTwoSteps(&cluster);
  cluster.ps[1]->answers_claims = false;
  cluster.StartCoordinator();
  OperatorRequest drain = OperatorRequest::Drain(&cluster, "chief", 0);
  cluster.Advance(seconds(20));
  EXPECT_THAT(drain.status(), FailsWith(absl::StatusCode::kUnavailable, {"ps 1"}));
  EXPECT_TRUE(cluster.over.has_value());
}

// It finishes what it holds, though it gets nothing new.
TEST(TrainingTakeoverTest, StepsOfADrainingWorkerAreAwaited) {
  ScriptedCluster cluster({.ps = 2});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishStep(worker);
  const uint64_t timeline = worker.timeline;
  cluster.ps[1]->answers_claims = false;
  cluster.StartCoordinator();
  ScriptedWorker& again =
      cluster.Join({.index = 0, .incarnation = 1, .timeline = timeline, .held_steps = {1, 2}});
  again.SendDraining();
  cluster.ps[1]->answers_claims = true;
  cluster.ps[0]->Leave();
  cluster.Advance(seconds(1));
  EXPECT_FALSE(cluster.ps[0]->stopped);
  again.timeline = timeline;
  again.leases = {1, 2};
  cluster.FinishAll(again);
  cluster.Advance(seconds(1));
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(3));
}

TEST(TrainingTakeoverTest, APsThatLeavesIsKept) {
  ScriptedCluster cluster({.ps = 2});
  TakeOverAfterTwoSteps(&cluster);
  cluster.ps[1]->Leave();
  cluster.Advance(seconds(10));
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(2));
  EXPECT_TRUE(cluster.ps[1]->stopped);
  EXPECT_FALSE(cluster.ps[0]->stopped);
}

TEST(TrainingTakeoverTest, ACheckpointHasWhatIsApplied) {
  ScriptedCluster cluster({.ps = 2});
  TakeOverAfterTwoSteps(&cluster);
  OperatorRequest request = OperatorRequest::Checkpoint(&cluster);
  ASSERT_TRUE(request.status().ok()) << request.status();
  EXPECT_EQ(request.reply<proto::CheckpointReply>().step(), 2u);
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(2));
  // The disk is full once; then the same cut is another one.
  cluster.StartCoordinator();
  cluster.ps[0]->write_error = "no space left";
  EXPECT_FALSE(OperatorRequest::Checkpoint(&cluster).status().ok());
  cluster.ps[0]->write_error.clear();
  EXPECT_TRUE(OperatorRequest::Checkpoint(&cluster).status().ok());
}

// Which a worker has said to a coordinator before it.
TEST(TrainingTakeoverTest, ACheckpointHasTheNumbersOfTheOneBefore) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  const OperatorRequest before = OperatorRequest::Checkpoint(&cluster);
  cluster.FinishStep(worker);
  cluster.FinishStep(worker);
  ASSERT_TRUE(before.status().ok()) << before.status();
  cluster.FinishStep(worker);
  cluster.StartCoordinator();
  ASSERT_TRUE(OperatorRequest::Checkpoint(&cluster).status().ok());
  const auto stored = CheckpointStore(cluster.run_dir() + "/checkpoints").List(nullptr);
  ASSERT_TRUE(stored.ok() && !stored->empty());
  const Manifest& written = stored->front().manifest;
  EXPECT_EQ(written.cut_step, 3u);
  EXPECT_EQ(written.total_steps, 26u);
  EXPECT_EQ(written.training_examples, 200u);
}

// One that was written where nobody knew them hides them from nobody.
TEST(TrainingTakeoverTest, TheNumbersMayBeThoseOfAnOlderCheckpoint) {
  ScriptedCluster cluster({.checkpoint = R"({"every_steps": 5})"});
  ScriptedWorker& worker = cluster.Join(0);
  for (int i = 0; i < 12; ++i) cluster.FinishStep(worker);
  const auto stored = CheckpointStore(cluster.run_dir() + "/checkpoints").List(nullptr);
  ASSERT_GE(stored->size(), 2u);
  StoredCheckpoint newest = stored->front();
  newest.manifest.total_steps = newest.manifest.training_examples = 0;
  WriteAll(newest.directory + "/" + kManifestName, newest.manifest.ToText());
  cluster.StartCoordinator();
  EXPECT_EQ(cluster.run->Status().total_steps(), 26u);
}

// Its number of steps is not known: it is not taken for the end of the job.
TEST(TrainingTakeoverTest, TheJobIsNotOverWithSuchACheckpoint) {
  ScriptedCluster cluster({});
  cluster.Join(0);
  cluster.StartCoordinator();
  EXPECT_TRUE(OperatorRequest::Checkpoint(&cluster).status().ok());
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(0));
  cluster.Advance(seconds(5));
  EXPECT_EQ(cluster.run->Status().phase(), "training");
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishAll(worker);
  EXPECT_EQ(cluster.run->Status().phase(), "finished");
}

// The last step is applied and the last checkpoint is not written: it is the one that says so.
TEST(TrainingTakeoverTest, TheEndIsStoredWithItsNumberOfSteps) {
  ScriptedCluster cluster({.epochs = 1});
  cluster.Join(0);
  for (uint64_t step = 0; step < 13; ++step) cluster.ps[0]->applied.insert(step);
  cluster.StartCoordinator();
  EXPECT_TRUE(OperatorRequest::Checkpoint(&cluster).status().ok());
  cluster.Join(0);
  EXPECT_EQ(cluster.run->Status().phase(), "finished");
  const auto stored = CheckpointStore(cluster.run_dir() + "/checkpoints").List(nullptr);
  ASSERT_TRUE(stored.ok() && !stored->empty());
  EXPECT_TRUE(stored->front().manifest.finished());
}

// A worker that has lost its coordinator finishes what it holds, and may leave before it finds the
// next one.
TEST(TrainingTakeoverTest, StepsAppliedAfterTheTakeoverAreKeptToo) {
  ScriptedCluster cluster({.ps = 2});
  TakeOverAfterTwoSteps(&cluster);
  for (auto& each : cluster.ps) each->applied.insert(2);
  cluster.ps[0]->applied.insert(3);
  cluster.Advance(seconds(2));
  cluster.ps[1]->applied.insert(3);
  cluster.Advance(seconds(2));
  EXPECT_EQ(cluster.run->Status().steps_done(), 4u);
  cluster.run->Stop();
  cluster.Advance(seconds(10));
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(4));
}

TEST(TrainingTakeoverTest, TheStatusHasWhatIsDoneAndTheNewestCheckpointOnDisk) {
  ScriptedCluster cluster({.checkpoint = R"({"every_steps": 5})"});
  EXPECT_FALSE(cluster.run->Status().has_last_checkpoint());
  ScriptedWorker& worker = cluster.Join(0);
  for (int i = 0; i < 6; ++i) cluster.FinishStep(worker);
  const proto::CheckpointStatus before = cluster.run->Status().last_checkpoint();
  ASSERT_EQ(before.step(), 5u);
  EXPECT_TRUE(before.has_age_seconds());
  cluster.StartCoordinator();
  const proto::StatusReply status = cluster.run->Status();
  EXPECT_EQ(status.steps_done(), 6u);
  EXPECT_EQ(status.base_step(), 6u);
  EXPECT_EQ(status.total_steps(), 26u) << "by the checkpoint's number of examples";
  EXPECT_EQ(status.last_checkpoint().directory(), before.directory());
  EXPECT_EQ(status.last_checkpoint().step(), 5u);
  EXPECT_EQ(status.last_checkpoint().size_bytes(), before.size_bytes());
  EXPECT_FALSE(status.last_checkpoint().has_age_seconds()) << "nobody here has seen it written";
}

// --- The schedule of checkpoints goes on -------------------------------------------------------

// Coordinators that die every few steps.
TEST(TrainingTakeoverTest, CheckpointsAreTakenEverySoManyStepsOfAllCoordinators) {
  ScriptedCluster cluster(
      {.checkpoint = R"({"every_steps": 40, "every_seconds": 0, "keep": 9})", .epochs = 10});
  for (int life = 0; life < 20; ++life) {
    ScriptedWorker& worker = cluster.Join(0);
    for (int i = 0; i < 5; ++i) cluster.FinishStep(worker);
    cluster.StartCoordinator();
  }
  EXPECT_THAT(cluster.StoredSteps(), SizeIs(2)) << "of 100 steps";
}

// Steps stored after the next coordinator has done a few steps, newest first, where the newest
// checkpoint is `age` old.
std::vector<uint64_t> StoredByASuccessor(ScriptedCluster* cluster, seconds age) {
  namespace fs = std::filesystem;
  const auto stored = CheckpointStore(cluster->run_dir() + "/checkpoints").List(nullptr);
  const fs::path newest = stored->front().directory;
  fs::last_write_time(newest / kManifestName, fs::file_time_type::clock::now() - age);
  cluster->StartCoordinator();
  cluster->Advance(seconds(2));
  ScriptedWorker& worker = cluster->Join(0);
  for (int i = 0; i < 4; ++i) cluster->FinishStep(worker);
  return cluster->StoredSteps();
}

TEST(TrainingTakeoverTest, TheAgeOfTheNewestCheckpointCounts) {
  for (const bool ps_too : {false, true}) {
    SCOPED_TRACE(ps_too ? "all were started again" : "taken over");
    ScriptedCluster cluster({.checkpoint = R"({"every_seconds": 600})", .epochs = 10});
    ScriptedWorker& worker = cluster.Join(0);
    const OperatorRequest request = OperatorRequest::Checkpoint(&cluster);
    for (int i = 0; i < 2; ++i) cluster.FinishStep(worker);
    ASSERT_THAT(cluster.StoredSteps(), ElementsAre(2));
    if (ps_too) cluster.ps[0]->Restart();
    EXPECT_THAT(StoredByASuccessor(&cluster, seconds(500)), ElementsAre(2)) << "not yet";
    if (ps_too) cluster.ps[0]->Restart();
    EXPECT_THAT(StoredByASuccessor(&cluster, seconds(601)), SizeIs(2));
  }
}

// It may be that of many coordinators, none of which lived for a checkpoint.
TEST(TrainingTakeoverTest, WhereNoneIsStoredOneIsDueAtOnce) {
  ScriptedCluster cluster({.checkpoint = R"({"every_seconds": 600})"});
  TakeOverAfterTwoSteps(&cluster);
  ScriptedWorker& worker = cluster.Join(0);
  for (int i = 0; i < 4; ++i) cluster.FinishStep(worker);
  EXPECT_THAT(cluster.StoredSteps(), SizeIs(1));
}

TEST(TrainingTakeoverTest, StepsAppliedWhileItStopsAreKeptToo) {
  ScriptedCluster cluster({});
  TakeOverAfterTwoSteps(&cluster);
  cluster.Advance(seconds(10));
  cluster.loop.set_hold_offloads(true);
  cluster.run->Stop();  // the cut is begun at 2
  cluster.ps[0]->applied.insert(2);
  cluster.Advance(seconds(2));
  cluster.loop.set_hold_offloads(false);
  cluster.Advance(seconds(2));
  EXPECT_EQ(cluster.ps[0]->fences_rejected, 1u);
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(3));
  EXPECT_TRUE(cluster.over.has_value());
}

TEST(TrainingTakeoverTest, AStopWaitsForWorkersThatAreOnTheirWay) {
  ScriptedCluster cluster({});
  ScriptedWorker& former = cluster.Join(0);
  cluster.FinishStep(former);
  const uint64_t timeline = former.timeline;
  cluster.StartCoordinator();
  cluster.run->Stop();
  cluster.Advance(seconds(3));
  EXPECT_FALSE(cluster.over.has_value());
  EXPECT_THAT(cluster.ps[0]->fences, IsEmpty());
  ScriptedWorker& worker = cluster.Join({.timeline = timeline, .held_steps = {1, 2}});
  worker.timeline = timeline;
  for (const uint64_t step : {1, 2}) {
    cluster.ps[0]->applied.insert(step);
    worker.Report(step);
    cluster.Settle();
  }
  EXPECT_THAT(worker.leases, IsEmpty()) << "nothing new";
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(3));
  EXPECT_TRUE(cluster.over.has_value());
}

TEST(TrainingTakeoverTest, AStopSaysWhyThereIsNoCheckpoint) {
  ScriptedCluster cluster({});
  TakeOverAfterTwoSteps(&cluster);
  cluster.ps[0]->applied.insert(3);  // and not 2, which a worker had that is gone
  cluster.Advance(seconds(2));
  EXPECT_EQ(cluster.run->Status().steps_done(), 3u);
  cluster.run->Stop();
  cluster.Advance(seconds(10));
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_THAT(*cluster.over, FailsWith(absl::StatusCode::kCancelled, {"no worker"}));
  EXPECT_THAT(cluster.StoredSteps(), IsEmpty());
}

// What was loaded, or drawn from the seed, is there without a checkpoint.
TEST(TrainingTakeoverTest, WhereNobodyHasTrainedThereIsNothingToKeep) {
  ScriptedCluster cluster({});
  cluster.Advance(seconds(2));
  cluster.run->Stop();
  cluster.Settle();
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_THAT(cluster.StoredSteps(), IsEmpty());
}

}  // namespace
}  // namespace shoal
