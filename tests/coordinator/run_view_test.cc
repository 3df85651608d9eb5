#include "coordinator/run_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/common/metrics/sample_value.h"
#include "tests/coordinator/run_parts_fixture.h"

namespace shoal {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

class RunViewTest : public RunPartsTest {
 protected:
  // In office, in an open timeline of two epochs of 10 steps.
  void Begin() {
    ASSERT_NO_FATAL_FAILURE(Lead());
    MakeParts(MakeJob());
    parts_->job_optimizer = *MakeOptimizer(R"({"class_name": "SGD", "config": {}})");
    parts_->plan.emplace(100, 10, 2, 0);
    parts_->opened = {.timeline = fleet_->timeline()};
    parts_->counters = {.timelines_opened = 1, .steps_done = 5, .examples = 50};
    parts_->scheduler->Open({.timeline = fleet_->timeline(), .total_steps = 20});
  }
  Worker& Train() {
    Worker& worker = workers_.Join(0);
    parts_->cuts.emplace(CutPlan::Options{.timeline = fleet_->timeline(), .plan = parts_->plan});
    parts_->scheduler->Begin();
    parts_->scheduler->Offer(worker);
    parts_->scheduler->ServeQueue();
    return worker;
  }
  RunView View() { return RunView(*parts_, loop_.Now()); }
  void Wait(Time time) {
    parts_->scheduler->UpdateIdleSince();
    loop_.Advance(time);
    parts_->scheduler->UpdateIdleSince();
  }
};

TEST_F(RunViewTest, ThePhaseIsThatOfWhatIsFurthest) {
  Start();
  MakeParts(MakeJob());
  EXPECT_EQ(View().phase(), RunPhase::kClaiming);
  ClaimAllEmpty();
  EXPECT_EQ(View().phase(), RunPhase::kLoading);
  for (int i = 0; i < kPsCount; ++i) AnswerLoaded(i, fleet_->term());
  EXPECT_EQ(View().phase(), RunPhase::kTraining);
  parts_->opened = {.timeline = fleet_->timeline(), .adopted = true};
  parts_->scheduler->Open({.timeline = fleet_->timeline(), .total_steps = 20});
  parts_->drain->Stop();
  EXPECT_EQ(View().phase(), RunPhase::kStopping);
  parts_->shutdown->Save({.values = WriteSmallCheckpoint(&store_, 1, 20)});
  EXPECT_EQ(View().phase(), RunPhase::kFinished) << "the last step was done on the way";
  parts_->shutdown->Over(absl::InternalError("another leads"));
  EXPECT_EQ(View().phase(), RunPhase::kFailed);
  EXPECT_STREQ(PhaseName(View().phase()), "failed");
}

TEST_F(RunViewTest, AStoppedRunIsStoppingUntilItsProcessEnds) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  parts_->drain->Stop();
  ASSERT_TRUE(parts_->shutdown->over());
  EXPECT_EQ(View().phase(), RunPhase::kStopping);
}

TEST_F(RunViewTest, AHistoryThatCannotBeReadIsWaitedFor) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  Train();
  std::filesystem::create_directory(RunPaths{directory_.path()}.history());
  parts_->history->ReadEarlier();
  loop_.RunUntilIdle();
  EXPECT_THAT(View().Status().waiting(), ElementsAre(HasSubstr("/history.csv")));
}

TEST_F(RunViewTest, StatusHasTheStepsTheTasksAndTheirHolders) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  Worker& worker = Train();
  parts_->scheduler->Done(worker, 0);
  const proto::StatusReply status = View().Status();
  EXPECT_EQ(status.phase(), "training");
  EXPECT_EQ(status.total_steps(), 20u);
  EXPECT_EQ(status.base_step(), 1u);
  EXPECT_EQ(status.steps_done(), 1u);
  EXPECT_EQ(status.steps_done_here(), 5u);
  EXPECT_EQ(status.timeline(), fleet_->timeline());
  ASSERT_EQ(status.tasks_size(), 2 + 4);
  EXPECT_EQ(status.tasks(1).address(), "ps-1:1");
  EXPECT_EQ(status.tasks(1).state(), "up");
  EXPECT_EQ(status.tasks(2).type(), "worker");
  EXPECT_EQ(status.tasks(2).held(), 1u);
  EXPECT_THAT(status.waiting(), IsEmpty());
}

TEST_F(RunViewTest, AListedWorkerThatNeverCameHasARow) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  workers_.Join(2);
  const proto::StatusReply status = View().Status();
  std::vector<std::string> states;
  for (const proto::TaskStatus& task : status.tasks()) {
    if (task.type() != "worker") continue;
    EXPECT_EQ(task.index(), states.size());
    EXPECT_EQ(task.address().empty(), task.state() == "connecting");
    states.push_back(task.state());
  }
  EXPECT_THAT(states, ElementsAre("connecting", "connecting", "preparing", "connecting"));
}

TEST_F(RunViewTest, APsThatWasReachedAndIsGoneIsLost) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  ps(0).Close(absl::UnavailableError("connection reset"));
  loop_.RunUntilIdle();
  EXPECT_EQ(View().Status().tasks(0).state(), "lost");
  EXPECT_THAT(View().Status().tasks(0).detail(), HasSubstr("connection reset"));
  EXPECT_EQ(View().Status().tasks(1).state(), "up");
  loop_.Advance(seconds(2));
  EXPECT_EQ(View().Status().tasks(0).state(), "lost") << "it tries again";
  SendHello(0);
  EXPECT_EQ(View().Status().tasks(0).state(), "up");
}

TEST_F(RunViewTest, WithoutAWorkerItWaitsForOneAndSaysHowOneComes) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  Wait(seconds(3));
  EXPECT_THAT(View().Waiting(),
              ElementsAre(AllOf(HasSubstr(" 3 s"), EndsWith("shoal-worker --chief=chief:1"))));
  parts_->shutdown->Fail("not finite");
  EXPECT_THAT(View().Waiting(), IsEmpty()) << "nobody is needed";
}

TEST_F(RunViewTest, WithTlsItSaysThatANewWorkerNeedsCertificates) {
  tls_ = true;
  ASSERT_NO_FATAL_FAILURE(Begin());
  Wait(seconds(3));
  EXPECT_THAT(View().Waiting(), ElementsAre(EndsWith(" --chief=chief:1 --tls_dir=DIR")));
}

TEST_F(RunViewTest, AWorkerThatWaitsIsNamed) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  Train().waiting.set_what("waiting for ps 1");
  EXPECT_THAT(View().Waiting(),
              ElementsAre(AllOf(HasSubstr("worker 0"), HasSubstr("waiting for ps 1"))));
  workers_.Find(0)->waiting.set_computing(true);
  EXPECT_THAT(View().Waiting(), IsEmpty()) << "it is at work";
}

TEST_F(RunViewTest, FiguresComeFromTheParts) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  Train();
  const RunView view = View();
  EXPECT_EQ(SampleValue(view, "shoal_phase", {"training"}), 1);
  EXPECT_EQ(SampleValue(view, "shoal_phase", {"stopping"}), 0);
  EXPECT_EQ(SampleValue(view, "shoal_steps_leased_total"), 2);
  EXPECT_EQ(SampleValue(view, "shoal_leased_steps", {"0"}), 2);
  EXPECT_EQ(SampleValue(view, "shoal_steps_done_total"), 5);
  EXPECT_EQ(SampleValue(view, "shoal_examples_total"), 50);
  EXPECT_EQ(SampleValue(view, "shoal_workers_ready"), 1);
  EXPECT_EQ(SampleValue(view, "shoal_epoch"), 1);
  EXPECT_EQ(SampleValue(view, "shoal_waits"), 0);
}

}  // namespace
}  // namespace shoal
