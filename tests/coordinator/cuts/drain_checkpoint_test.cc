#include "coordinator/cuts/drain_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  // In office, where worker 0 holds steps 0 and 1 of `timeline`, and a Checkpointer that has no ps.
  void Begin(bool adopted = false) {
    ASSERT_NO_FATAL_FAILURE(Lead());
    MakeParts();
    now_open_ = {.timeline = fleet_->timeline(), .adopted = adopted};
    handout_.Open({.timeline = fleet_->timeline(), .total_steps = 100});
    closing_->OnTimelineOpened();
  }
  Worker& Train() {
    Worker& worker = workers_.Join(0);
    handout_.Begin();
    handout_.Offer(worker);
    handout_.ServeLine();
    EXPECT_EQ(handout_.steps().held(worker.key), 2u);
    return worker;
  }
  // It says how far it is: it has begun the steps below.
  void Halt(Worker& worker, uint64_t begun_below) {
    proto::Halted halted;
    halted.set_timeline(fleet_->timeline());
    halted.set_begun_below(begun_below);
    handout_.OnHalted(worker, halted);
  }
  void Plan() {
    if (const std::optional<uint64_t> step = closing_->Plan()) cuts_.push_back(*step);
  }
  // As the run does four times a second.
  void Pass(Time time) {
    for (const Time end = loop_.Now() + time; loop_.Now() < end;) {
      loop_.Advance(std::chrono::milliseconds(250));
      handout_.UpdateIdleSince();
      closing_->BeforePlan();
      if (closing_->closing() && ending_->working() && handout_.open()) Plan();
      closing_->AfterPlan();
    }
  }
  StoredCheckpoint Stored(uint64_t step) const {
    StoredCheckpoint stored{.directory = absl::StrCat("RUN/checkpoints/step-", step)};
    stored.manifest.timeline = fleet_->timeline();
    stored.manifest.cut_step = step;
    return stored;
  }

  std::vector<uint64_t> cuts_;  // that closing_ wants to begin
};

TEST_F(DrainCheckpointTest, AStopTakesBackWhatIsNotBegunCutsTheRestAndIsOver) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  Worker& worker = Train();
  EXPECT_FALSE(closing_->closing());
  closing_->Stop();
  EXPECT_TRUE(closing_->closing() && closing_->stopping());
  Plan();
  EXPECT_THAT(cuts_, IsEmpty()) << "how far the worker is has to be known";
  Halt(worker, 1);
  Plan();
  EXPECT_THAT(cuts_, ElementsAre(1));
  checkpointer_->SetLast(Stored(1));
  Plan();
  EXPECT_THAT(Message(outcome_),
              HasSubstr("stopped: the checkpoint is written: RUN/checkpoints/step-1"));
  EXPECT_TRUE(absl::IsCancelled(*outcome_));
  EXPECT_TRUE(closing_->kept());
}

TEST_F(DrainCheckpointTest, AStopBeforeAnyWorkerCameHasNothingToKeep) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  closing_->Stop();
  EXPECT_EQ(Message(outcome_), "stopped before training began");
  EXPECT_TRUE(closing_->kept());
}

TEST_F(DrainCheckpointTest, AStopInATimelineOfAFormerCoordinatorKeepsWhatThatHasDone) {
  ASSERT_NO_FATAL_FAILURE(Begin(/*adopted=*/true));
  closing_->Stop();
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
  closing_->Stop();
  now_open_.reset();
  handout_.Close();
  closing_->OnTimelineOver("ps 0 was started again");
  EXPECT_THAT(Message(outcome_), HasSubstr("ps 0 was started again"));
  EXPECT_FALSE(closing_->kept());
}

TEST_F(DrainCheckpointTest, ACheckpointThatCannotBeWrittenIsTriedAgainForAWhile) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  Worker& worker = Train();
  handout_.Done(worker, 0);
  closing_->Stop();
  Plan();
  Halt(worker, 1);
  Plan();
  EXPECT_THAT(cuts_, ElementsAre(1));
  closing_->NotWritten("no space left", /*too_late=*/false);
  EXPECT_TRUE(closing_->not_written_since().has_value());
  Plan();
  EXPECT_THAT(cuts_, ElementsAre(1)) << "not at once";
  loop_.Advance(seconds(6));
  Plan();
  EXPECT_THAT(cuts_, ElementsAre(1, 1));
  loop_.Advance(seconds(10));
  closing_->NotWritten("no space left", /*too_late=*/false);
  EXPECT_THAT(Message(outcome_),
              AllOf(HasSubstr("no space left"), HasSubstr("1 step done since the beginning"),
                    HasSubstr("will be lost with the ps")));
  EXPECT_FALSE(closing_->kept());
}

TEST_F(DrainCheckpointTest, AStopWaitsForWhoComputesAndNotForWhoStandsStill) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  Worker& worker = Train();
  closing_->Stop();
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
  handout_.Done(worker, 1);
  closing_->Stop();
  workers_.Break(0);
  Pass(seconds(6));
  EXPECT_THAT(Message(outcome_), HasSubstr("no worker is left to do them"));
  EXPECT_FALSE(closing_->kept());
}

// With steps that it holds, over another stream.
TEST_F(DrainCheckpointTest, WhoHasNotSaidThatItLeavesMayComeBack) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  Worker& worker = Train();
  closing_->Stop();
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
  closing_->OnPsDeparting(1);
  EXPECT_TRUE(closing_->closing());
  EXPECT_FALSE(closing_->stopping());
  Plan();
  Halt(worker, 2);
  Plan();
  EXPECT_THAT(cuts_, ElementsAre(2));
  EXPECT_FALSE(ToldToStop(1));
  checkpointer_->SetLast(Stored(2));
  Plan();
  EXPECT_TRUE(ToldToStop(1));
  EXPECT_FALSE(outcome_.has_value()) << "the run goes on with its successor";
  // It is told, and stays.
  Pass(seconds(11));
  EXPECT_FALSE(closing_->closing());
  closing_->Stop();
  Plan();
  EXPECT_TRUE(handout_.revoking()) << "the worker is asked anew";
}

// It has some chunks of a step whose worker died, and whose successor left before it had it again.
TEST_F(DrainCheckpointTest, APsThatLeavesWaitsAWhileForWhoDoesTheRestOfAStep) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  Worker& worker = Train();
  handout_.Done(worker, 0);
  SendDeparting(1);
  closing_->OnPsDeparting(1);
  Plan();
  Halt(worker, 1);
  Plan();
  EXPECT_THAT(cuts_, ElementsAre(1));
  closing_->NotWritten("ps 0 has applied step 1", /*too_late=*/true);
  EXPECT_FALSE(ToldToStop(1));
  Plan();
  EXPECT_THAT(cuts_, ElementsAre(1)) << "not at once";
  loop_.Advance(seconds(6));
  Plan();
  EXPECT_THAT(cuts_, ElementsAre(1, 1));
  loop_.Advance(seconds(10));
  closing_->NotWritten("ps 0 has applied step 1", /*too_late=*/true);
  EXPECT_TRUE(ToldToStop(1));
}

TEST_F(DrainCheckpointTest, APsThatLeavesDoesNotWaitForADiskToGetRoom) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  handout_.Done(Train(), 0);
  SendDeparting(1);
  closing_->OnPsDeparting(1);
  closing_->NotWritten("no space left", /*too_late=*/false);
  EXPECT_TRUE(ToldToStop(1));
}

TEST_F(DrainCheckpointTest, APsThatLeavesDoesNotWaitForTheEndOfAnEvaluation) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  Train();
  handout_.BeginEvaluation(std::make_unique<Evaluation>(0, 0, 3, 0, seconds(10)));
  SendDeparting(0);
  closing_->OnPsDeparting(0);
  loop_.Advance(seconds(4));
  closing_->BeforePlan();
  EXPECT_NE(handout_.evaluation(), nullptr);
  loop_.Advance(seconds(2));
  closing_->BeforePlan();
  EXPECT_EQ(handout_.evaluation(), nullptr);
}

}  // namespace
}  // namespace shoal
