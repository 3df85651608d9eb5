#include "coordinator/cuts/drain_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/coordinator/run_parts_fixture.h"

namespace shoal {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class DrainCheckpointTest : public RunPartsTest {
 protected:
  // Leads an open timeline of 100 steps. No cut begins: the test says how each one ends.
  void Begin(bool adopted = false) {
    ASSERT_NO_FATAL_FAILURE(Lead());
    Job job = MakeJob();
    job.strategy.lease_timeout_seconds = 20;
    MakeParts(std::move(job));
    waiting_ = {"worker 0"};
    parts_->opened = {.timeline = fleet_->timeline(), .adopted = adopted};
    parts_->scheduler->Open({.timeline = fleet_->timeline(), .total_steps = 100});
    parts_->drain->OnTimelineOpened();
  }
  // Worker 0 holds steps 0 and 1.
  Worker& Train() {
    Worker& worker = workers_.Join(0);
    parts_->scheduler->Begin();
    parts_->scheduler->Offer(worker);
    parts_->scheduler->ServeQueue();
    EXPECT_EQ(parts_->scheduler->steps().held(worker.key), 2u);
    return worker;
  }
  // It says how far it is: it has begun the steps below.
  void Halt(Worker& worker, uint64_t begun_below) {
    proto::Halted halted;
    halted.set_timeline(fleet_->timeline());
    halted.set_begun_below(begun_below);
    parts_->scheduler->OnHalted(worker, halted);
  }
  void Plan() {
    if (const std::optional<uint64_t> step = parts_->drain->Plan()) cuts_.push_back(*step);
  }
  // As the run does four times a second.
  void Pass(Time time) {
    for (const Time end = loop_.Now() + time; loop_.Now() < end;) {
      loop_.Advance(std::chrono::milliseconds(250));
      parts_->scheduler->UpdateIdleSince();
      parts_->drain->BeforePlan();
      if (parts_->drain->closing() && parts_->shutdown->working() && parts_->scheduler->open())
        Plan();
      parts_->drain->AfterPlan();
    }
  }

  std::vector<uint64_t> cuts_;  // that DrainCheckpoint wants to begin
};

TEST_F(DrainCheckpointTest, AStopTakesBackWhatIsNotBegunCutsTheRestAndIsOver) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  Worker& worker = Train();
  EXPECT_FALSE(parts_->drain->closing());
  parts_->drain->Stop();
  EXPECT_TRUE(parts_->drain->closing() && parts_->drain->stopping());
  Plan();
  EXPECT_THAT(cuts_, IsEmpty()) << "how far the worker is has to be known";
  Halt(worker, 1);
  Plan();
  EXPECT_THAT(cuts_, ElementsAre(1));
  parts_->checkpointer->SetLast(Stored(1));
  Plan();
  EXPECT_THAT(Message(outcome_), HasSubstr("stopped: the checkpoint is written: step-1"));
  EXPECT_TRUE(absl::IsCancelled(*outcome_));
  EXPECT_TRUE(parts_->drain->kept());
}

TEST_F(DrainCheckpointTest, AStopBeforeAnyWorkerCameHasNothingToKeep) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  parts_->drain->Stop();
  EXPECT_EQ(Message(outcome_), "stopped before training began");
  EXPECT_TRUE(parts_->drain->kept());
}

TEST_F(DrainCheckpointTest, AStopInATimelineOfAFormerCoordinatorKeepsWhatThatHasDone) {
  ASSERT_NO_FATAL_FAILURE(Begin(/*adopted=*/true));
  parts_->drain->Stop();
  EXPECT_FALSE(outcome_.has_value());
  Plan();
  EXPECT_THAT(cuts_, IsEmpty()) << "its workers may come with what they hold";
  Pass(seconds(6));
  ASSERT_FALSE(cuts_.empty());
  EXPECT_EQ(cuts_[0], 0u);
}

TEST_F(DrainCheckpointTest, AStopWhileThePsAreRestoredLosesWhatWasDone) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  Train();
  parts_->drain->Stop();
  parts_->opened.reset();
  parts_->scheduler->Close();
  parts_->drain->OnTimelineOver("ps 0 was started again");
  EXPECT_FALSE(outcome_.has_value()) << "the next turn decides";
  parts_->drain->CloseEarly();
  EXPECT_THAT(Message(outcome_), HasSubstr("ps 0 was started again"));
  EXPECT_FALSE(parts_->drain->kept());
}

TEST_F(DrainCheckpointTest, ACheckpointThatCannotBeWrittenIsTriedAgainForAWhile) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  Worker& worker = Train();
  parts_->scheduler->Done(worker, 0);
  parts_->drain->Stop();
  Plan();
  Halt(worker, 1);
  Plan();
  EXPECT_THAT(cuts_, ElementsAre(1));
  parts_->drain->NotWritten("no space left", /*too_late=*/false);
  EXPECT_TRUE(parts_->drain->not_written_since().has_value());
  Plan();
  EXPECT_THAT(cuts_, ElementsAre(1)) << "not at once";
  loop_.Advance(seconds(6));
  Plan();
  EXPECT_THAT(cuts_, ElementsAre(1, 1));
  loop_.Advance(seconds(10));
  parts_->drain->NotWritten("no space left", /*too_late=*/false);
  EXPECT_THAT(Message(outcome_),
              AllOf(HasSubstr("no space left"), HasSubstr("1 step done since the beginning"),
                    HasSubstr("will be lost with the ps")));
  EXPECT_FALSE(parts_->drain->kept());
}

TEST_F(DrainCheckpointTest, AStopWaitsForWhoComputesAndNotForWhoStandsStill) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  Worker& worker = Train();
  parts_->drain->Stop();
  Pass(seconds(14));
  EXPECT_FALSE(outcome_.has_value());
  worker.waiting.set_what("computing step 0");
  worker.waiting.set_computing(true);
  worker.waiting_at = loop_.Now();
  Pass(seconds(5));
  EXPECT_FALSE(outcome_.has_value()) << "its lease says how long";
  Pass(seconds(15));
  EXPECT_THAT(Message(outcome_), HasSubstr("gave up waiting for worker 0"));
}

TEST_F(DrainCheckpointTest, WithoutWorkersItEndsWithoutTheirSteps) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  Worker& worker = Train();
  parts_->scheduler->Done(worker, 1);
  parts_->drain->Stop();
  workers_.Break(0);
  Pass(seconds(6));
  EXPECT_THAT(Message(outcome_), HasSubstr("no worker is left to do them"));
  EXPECT_FALSE(parts_->drain->kept());
}

// With steps that it holds, over another stream.
TEST_F(DrainCheckpointTest, AWorkerThatDidNotSayItLeavesMayComeBack) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  Worker& worker = Train();
  parts_->drain->Stop();
  Plan();
  Halt(worker, 2);
  workers_.Break(0);
  Plan();
  EXPECT_FALSE(outcome_.has_value());
  Pass(seconds(6));
  EXPECT_THAT(Message(outcome_), HasSubstr("there is nothing to keep"));
}

TEST_F(DrainCheckpointTest, APsThatLeavesMayGoOnceItsCheckpointIsWritten) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  Worker& worker = Train();
  SendDeparting(1);
  parts_->drain->OnPsDeparting(1);
  EXPECT_TRUE(parts_->drain->closing());
  EXPECT_FALSE(parts_->drain->stopping());
  Plan();
  Halt(worker, 2);
  Plan();
  EXPECT_THAT(cuts_, ElementsAre(2));
  EXPECT_FALSE(ToldToStop(1));
  parts_->checkpointer->SetLast(Stored(2));
  Plan();
  EXPECT_TRUE(ToldToStop(1));
  EXPECT_FALSE(outcome_.has_value()) << "the run goes on with its successor";
  // It is told, and stays.
  Pass(seconds(11));
  EXPECT_FALSE(parts_->drain->closing());
  parts_->drain->Stop();
  Plan();
  EXPECT_TRUE(parts_->scheduler->revoking()) << "the worker is asked anew";
}

// It has some chunks of a step whose worker died, and whose successor left before it had it again.
TEST_F(DrainCheckpointTest, APsThatLeavesWaitsAWhileForWhoDoesTheRestOfAStep) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  Worker& worker = Train();
  parts_->scheduler->Done(worker, 0);
  SendDeparting(1);
  parts_->drain->OnPsDeparting(1);
  Plan();
  Halt(worker, 1);
  Plan();
  EXPECT_THAT(cuts_, ElementsAre(1));
  parts_->drain->NotWritten("ps 0 has applied step 1", /*too_late=*/true);
  EXPECT_FALSE(ToldToStop(1));
  Plan();
  EXPECT_THAT(cuts_, ElementsAre(1)) << "not at once";
  loop_.Advance(seconds(6));
  Plan();
  EXPECT_THAT(cuts_, ElementsAre(1, 1));
  loop_.Advance(seconds(10));
  parts_->drain->NotWritten("ps 0 has applied step 1", /*too_late=*/true);
  EXPECT_TRUE(ToldToStop(1));
}

TEST_F(DrainCheckpointTest, APsThatLeavesBeforeTrainingMayGoInTheNextTurn) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  SendDeparting(1);
  parts_->drain->OnPsDeparting(1);
  EXPECT_FALSE(ToldToStop(1));
  parts_->drain->CloseEarly();
  EXPECT_TRUE(ToldToStop(1));
}

TEST_F(DrainCheckpointTest, APsThatLeavesDoesNotWaitForADiskToGetRoom) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  parts_->scheduler->Done(Train(), 0);
  SendDeparting(1);
  parts_->drain->OnPsDeparting(1);
  parts_->drain->NotWritten("no space left", /*too_late=*/false);
  EXPECT_TRUE(ToldToStop(1));
}

TEST_F(DrainCheckpointTest, APsThatLeavesDoesNotWaitForTheEndOfAnEvaluation) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  Train();
  parts_->scheduler->BeginEvaluation(std::make_unique<Evaluation>(0, 0, 3, 0, seconds(10)));
  SendDeparting(0);
  parts_->drain->OnPsDeparting(0);
  loop_.Advance(seconds(4));
  parts_->drain->BeforePlan();
  EXPECT_NE(parts_->scheduler->evaluation(), nullptr);
  loop_.Advance(seconds(2));
  parts_->drain->BeforePlan();
  EXPECT_EQ(parts_->scheduler->evaluation(), nullptr);
}

}  // namespace
}  // namespace shoal
