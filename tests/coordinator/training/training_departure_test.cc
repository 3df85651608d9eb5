// A ps leaves while something else is under way: nothing that is done is lost by that.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/scripted_cluster.h"

namespace shoal {
namespace {

using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// Of the first epoch, on the one cut that is kept for it.
void EvaluateAll(ScriptedCluster* cluster, ScriptedWorker& worker) {
  while (!worker.evaluations.empty()) {
    worker.Evaluate();
    cluster->Settle();
  }
}

// The cut of an epoch says nothing of the one that is taken for who leaves.
TEST(TrainingDepartureTest, ACutThatFailsWhileAPsLeavesIsFollowedByAnother) {
  ScriptedCluster cluster({.test_examples = 50});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.ps[0]->writes = false;
  while (worker.evaluations.empty()) cluster.FinishStep(worker);
  cluster.ps[0]->Leave();
  cluster.Settle();
  cluster.FinishAll(worker);
  EvaluateAll(&cluster, worker);
  EXPECT_FALSE(cluster.ps[0]->stopped);
  const uint64_t done = cluster.run->Status().steps_done();
  // As of a ps that has no rows of it any more.
  cluster.ps[0]->writes = true;
  cluster.ps[0]->write_error = "the cut is gone";
  ASSERT_TRUE(cluster.ps[0]->Serve());
  cluster.ps[0]->write_error.clear();
  cluster.Settle();
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(done));
  EXPECT_TRUE(cluster.ps[0]->stopped);
}

// What a test result is worth is less than what is done meanwhile.
TEST(TrainingDepartureTest, APsThatLeavesDoesNotWaitForALongEvaluation) {
  ScriptedCluster cluster({.test_examples = 50});
  ScriptedWorker& worker = cluster.Join(0);
  while (worker.evaluations.empty()) cluster.FinishStep(worker);
  cluster.FinishStep(worker);
  cluster.ps[0]->Leave();
  cluster.Settle();
  cluster.FinishAll(worker);
  cluster.Advance(seconds(3));
  EXPECT_FALSE(cluster.ps[0]->stopped) << "most evaluations end soon";
  cluster.Advance(seconds(5));
  EXPECT_TRUE(cluster.ps[0]->stopped);
  EXPECT_THAT(cluster.StoredSteps(), Contains(cluster.run->Status().steps_done()));
}

// Its stream to the coordinator broke, and it goes on with what it holds.
TEST(TrainingDepartureTest, APsThatLeavesWaitsForAWorkerThatIsAwayForAMoment) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishStep(worker);
  EXPECT_THAT(worker.leases, ElementsAre(1, 2));
  cluster.Disconnect(worker);
  cluster.ps[0]->Leave();
  cluster.Advance(seconds(1));
  EXPECT_THAT(cluster.ps[0]->fences, IsEmpty()) << "it may be at step 1";
  ScriptedWorker& again = cluster.Join(
      {.index = 0, .incarnation = 1, .timeline = worker.timeline, .held_steps = {1, 2}});
  again.leases = {1, 2};
  cluster.FinishAll(again);
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(3));
  EXPECT_TRUE(cluster.ps[0]->stopped);
}

// It is gone with its last report; the ps know what it did.
TEST(TrainingDepartureTest, AnUnreportedStepIsKept) {
  ScriptedCluster cluster({.ps = 2});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishStep(worker);
  for (auto& each : cluster.ps) each->applied.insert(1);
  cluster.Disconnect(worker);
  cluster.ps[0]->Leave();
  cluster.Advance(seconds(10));
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(2));
  EXPECT_TRUE(cluster.ps[0]->stopped);
}

// Its first steps may be applied, and not reported yet.
TEST(TrainingDepartureTest, APsThatLeavesBeforeTheFirstStepIsReportedWaitsForItsWorker) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  EXPECT_THAT(worker.leases, ElementsAre(0, 1));
  cluster.Disconnect(worker);
  cluster.ps[0]->Leave();
  cluster.Advance(seconds(1));
  EXPECT_FALSE(cluster.ps[0]->stopped);
  cluster.FinishAll(cluster.Join({.index = 0, .incarnation = 5}));
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(2));
  EXPECT_TRUE(cluster.ps[0]->stopped);
}

// What is on its way to a worker that has left is done by nobody where all leave at once.
TEST(TrainingDepartureTest, AWorkerThatDrainsHearsThatNoLeaseFollows) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  worker.SendDraining();
  cluster.Settle();
  EXPECT_NE(worker.drained, "");
  cluster.FinishAll(worker);
  EXPECT_THAT(worker.leased, ElementsAre(0, 1));
}

// Workers that have left in order hold nothing, and are not waited for.
TEST(TrainingDepartureTest, APsThatLeavesDoesNotWaitForWorkersThatHaveLeft) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishStep(worker);
  worker.Leave("SIGTERM");
  cluster.Settle();
  cluster.Disconnect(worker);
  cluster.ps[0]->Leave();
  cluster.Settle();
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(1));
  EXPECT_TRUE(cluster.ps[0]->stopped);
}

// Before all ps have answered nobody knows what they hold.
TEST(TrainingDepartureTest, APsThatLeavesWhileItIsClaimedIsKept) {
  ScriptedCluster cluster({.ps = 2});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishStep(worker);
  cluster.FinishStep(worker);
  cluster.ps[1]->answers_claims = false;
  cluster.StartCoordinator();
  cluster.ps[0]->Leave();
  cluster.Advance(seconds(2));
  EXPECT_FALSE(cluster.ps[0]->stopped);
  cluster.ps[1]->answers_claims = true;
  cluster.Advance(seconds(10));
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(2));
  EXPECT_TRUE(cluster.ps[0]->stopped);
}

// Else it would train on in the new timeline until its time is up.
TEST(TrainingDepartureTest, APsThatLeavesLeavesInTheNextTimelineToo) {
  ScriptedCluster cluster({.ps = 2});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishStep(worker);
  cluster.ps[0]->Leave();
  cluster.Settle();
  EXPECT_FALSE(cluster.ps[0]->stopped) << "the worker holds steps";
  cluster.ps[1]->Restart();
  cluster.Advance(seconds(2));
  EXPECT_THAT(worker.timelines, testing::SizeIs(2));
  EXPECT_TRUE(cluster.ps[0]->stopped);
  EXPECT_THAT(worker.leases, IsEmpty());
  // Its successor does not.
  cluster.ps[0]->stopped = false;
  cluster.ps[0]->Restart();
  cluster.Advance(seconds(2));
  EXPECT_FALSE(cluster.ps[0]->stopped);
  EXPECT_THAT(worker.leases, Not(IsEmpty()));
}

TEST(TrainingDepartureTest, AReplacementOfALeftWorkerIsNotToldToGo) {
  ScriptedCluster cluster({.ps = 3});
  cluster.FinishStep(cluster.Join(0));
  cluster.ps[1]->answers_claims = false;
  cluster.StartCoordinator();
  cluster.ps[0]->Leave();
  cluster.Settle();
  cluster.ps[0]->Restart();
  cluster.ps[2]->answers_loads = false;
  cluster.ps[1]->answers_claims = true;
  cluster.Advance(seconds(2));
  ASSERT_THAT(cluster.ps[2]->loads, SizeIs(2)) << "the new one has nothing";
  cluster.ps[1]->Leave();
  cluster.Settle();
  EXPECT_TRUE(cluster.ps[1]->stopped) << "there is nothing to keep";
  EXPECT_FALSE(cluster.ps[0]->stopped);
}

}  // namespace
}  // namespace shoal
