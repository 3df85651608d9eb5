#include "cli/display/training_display.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/display/captured_console.h"

namespace shoal {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr TerminalStyle kFile = {};
constexpr TerminalStyle kTerminal = {.terminal = true, .width = 100};

proto::StatusReply Training(uint64_t steps_done) {
  proto::StatusReply status;
  status.set_phase("training");
  status.set_epochs(2);
  status.set_steps_per_epoch(100);
  status.set_total_steps(200);
  status.set_steps_done(steps_done);
  status.set_epoch(steps_done / 100);
  return status;
}

proto::EpochResult* AddEpoch(proto::StatusReply* status, double loss) {
  proto::EpochResult* epoch = status->add_history();
  epoch->set_epoch(status->history_size() - 1);
  epoch->set_loss(loss);
  return epoch;
}

TEST(ConsoleTest, TheLiveLineIsTakenAwayForOthersAndPutBack) {
  CapturedConsole console(kTerminal);
  console.get()->ShowLive("live");
  EXPECT_EQ(console.Take(), "\r\x1b[2Klive");
  console.get()->ShowLive("live");
  EXPECT_THAT(console.Take(), IsEmpty());
  console.get()->Print("stays");
  EXPECT_EQ(console.Take(), "\r\x1b[2Kstays\n\r\x1b[2Klive");
  console.get()->ClearLive();
  EXPECT_EQ(console.Take(), "\r\x1b[2K");
  console.get()->PrintError("error\n");
  EXPECT_EQ(console.Take(), "error\n");
}

TEST(ConsoleTest, AFileGetsNoLiveLine) {
  CapturedConsole console(kFile);
  console.get()->ShowLive("live");
  console.get()->Print("stays");
  EXPECT_EQ(console.Take(), "stays\n");
}

TEST(TrainingDisplayTest, ATerminalGetsALiveLineForEachStatus) {
  CapturedConsole console(kTerminal);
  TrainingDisplay display(console.get(), {});
  display.Update(Training(10), seconds(0));
  EXPECT_THAT(console.Take(), HasSubstr("step 10/200"));
  display.Update(Training(11), seconds(0));
  EXPECT_THAT(console.Take(), HasSubstr("step 11/200"));
}

void SetDevice(uint32_t worker, const std::string& device, proto::StatusReply* status) {
  proto::TaskStatus* task = status->add_tasks();
  task->set_type("worker");
  task->set_index(worker);
  task->set_device(device);
}

TEST(TrainingDisplayTest, TheDevicesOfAllWorkersAreToldOnceTheyAreKnown) {
  CapturedConsole console(kTerminal);
  TrainingDisplay display(console.get(), {.workers = 3});
  proto::StatusReply status = Training(10);
  SetDevice(0, "cuda:0", &status);
  SetDevice(1, "cpu", &status);
  display.Update(status, seconds(0));
  EXPECT_THAT(console.Take(), Not(HasSubstr("computing")));
  SetDevice(2, "cpu", &status);
  display.Update(status, seconds(1));
  EXPECT_THAT(console.Take(),
              AllOf(HasSubstr("cpu: workers 1, 2"), HasSubstr("cuda:0: worker 0\n")));
  display.Update(status, seconds(2));
  status.mutable_tasks(0)->clear_device();  // it is gone
  display.Update(status, seconds(3));
  EXPECT_THAT(console.Take(), Not(HasSubstr("comput")));
  status.mutable_tasks(0)->set_device("cpu");
  display.Update(status, seconds(4));
  EXPECT_THAT(console.Take(), HasSubstr("on cpu\n"));
}

TEST(TrainingDisplayTest, AFileGetsALineEveryTenSecondsAndWhenThePhaseChanges) {
  CapturedConsole console(kFile);
  TrainingDisplay display(console.get(), {});
  display.Update(Training(10), seconds(0));
  EXPECT_THAT(console.Take(), HasSubstr("step 10/200"));
  display.Update(Training(20), seconds(9));
  EXPECT_THAT(console.Take(), IsEmpty());
  display.Update(Training(30), seconds(10));
  EXPECT_THAT(console.Take(), HasSubstr("step 30/200"));
  proto::StatusReply waiting = Training(30);
  waiting.add_waiting("ps 0: lost");
  display.Update(waiting, seconds(11));
  EXPECT_THAT(console.Take(), IsEmpty());  // it may be over in a moment
  display.Update(waiting, seconds(12));
  EXPECT_THAT(console.Take(), HasSubstr("waiting: ps 0: lost"));
  display.Update(waiting, seconds(21));
  EXPECT_THAT(console.Take(), IsEmpty());
  display.Update(waiting, seconds(22));
  EXPECT_THAT(console.Take(), HasSubstr("waiting: ps 0: lost"));
}

TEST(TrainingDisplayTest, EachEpochGetsOneLine) {
  CapturedConsole console(kFile);
  TrainingDisplay display(console.get(), {});
  proto::StatusReply status = Training(100);
  AddEpoch(&status, 0.5);
  display.Update(status, seconds(0));
  EXPECT_THAT(console.Take(), HasSubstr("epoch 1/2: loss 0.5"));
  display.Update(status, seconds(1));
  EXPECT_THAT(console.Take(), IsEmpty());
  AddEpoch(&status, 0.25);
  display.Update(status, seconds(2));
  EXPECT_THAT(console.Take(), HasSubstr("epoch 2/2: loss 0.25"));
}

TEST(TrainingDisplayTest, AnEpochThatIsDoneAgainGetsItsLineAgain) {
  CapturedConsole console(kFile);
  TrainingDisplay display(console.get(), {});
  proto::StatusReply status = Training(110);
  status.set_base_step(110);
  AddEpoch(&status, 0.5);
  display.Update(status, seconds(0));
  EXPECT_THAT(console.Take(), HasSubstr("epoch 1/2: loss 0.5"));
  proto::StatusReply gone_back = Training(60);
  gone_back.set_base_step(60);
  display.Update(gone_back, seconds(1));
  status.mutable_history(0)->set_loss(0.25);
  display.Update(status, seconds(2));
  EXPECT_THAT(console.Take(),
              AllOf(HasSubstr("epoch 1/2: loss 0.25"), HasSubstr(", done again\n")));
  status.set_base_step(200);
  AddEpoch(&status, 0.125);
  display.Update(status, seconds(3));
  EXPECT_THAT(console.Take(), AllOf(HasSubstr("epoch 2/2"), Not(HasSubstr("again"))));
  // At the end nothing is to be done again, whatever the history has.
  display.Update(status, seconds(4));
  EXPECT_THAT(console.Take(), IsEmpty());
}

TEST(TrainingDisplayTest, TheLineOfAnEpochWaitsForTheTestSet) {
  CapturedConsole console(kFile);
  TrainingDisplay display(console.get(), {.has_test_set = true});
  proto::StatusReply status = Training(100);
  AddEpoch(&status, 0.5);
  display.Update(status, seconds(0));
  EXPECT_THAT(console.Take(), Not(HasSubstr("epoch 1/2: ")));
  status.mutable_history(0)->set_test_loss(0.75);
  display.Update(status, seconds(1));
  EXPECT_THAT(console.Take(), HasSubstr("test loss 0.75"));
  // The last epoch's results may come after the last status, from history.csv.
  AddEpoch(&status, 0.25)->set_test_loss(0.5);
  display.PrintRemainingEpochs({status.history(0), status.history(1)});
  EXPECT_THAT(console.Take(), HasSubstr("epoch 2/2: loss 0.25"));
  display.PrintRemainingEpochs({status.history(0), status.history(1)});
  EXPECT_THAT(console.Take(), IsEmpty());
}

TEST(TrainingDisplayTest, EpochsOfAnEarlierStartAreNotRepeated) {
  CapturedConsole console(kTerminal);
  TrainingDisplay display(console.get(), {.first_epoch = 1});
  proto::StatusReply status = Training(100);
  AddEpoch(&status, 0.5);
  display.Update(status, seconds(0));
  EXPECT_THAT(console.Take(), Not(HasSubstr("epoch 1/2: ")));
}

// A job may be over before a status has come.
TEST(TrainingDisplayTest, TheNumberOfEpochsIsThatOfTheJob) {
  CapturedConsole console(TerminalStyle{});
  TrainingDisplay display(console.get(), {.epochs = 3});
  display.PrintRemainingEpochs(std::vector<proto::EpochResult>(1));
  EXPECT_THAT(console.Take(), HasSubstr("epoch 1/3: "));
}

// That one failed is in the coordinator's log, whose warnings are shown.
TEST(TrainingDisplayTest, ThatCheckpointsAreWrittenAgainIsSaidOnce) {
  CapturedConsole console(kFile);
  TrainingDisplay display(console.get(), {});
  proto::StatusReply status = Training(100);
  status.mutable_last_checkpoint()->set_directory("checkpoints/step-50");
  status.mutable_last_checkpoint()->set_last_error("disk full");
  display.Update(status, seconds(0));
  status.mutable_last_checkpoint()->set_last_error("disk still full");
  display.Update(status, seconds(1));
  EXPECT_THAT(console.Take(), Not(HasSubstr("full")));
  status.mutable_last_checkpoint()->clear_last_error();
  status.mutable_last_checkpoint()->set_directory("checkpoints/step-90");
  display.Update(status, seconds(2));
  EXPECT_THAT(console.Take(), HasSubstr("again: checkpoints/step-90\n"));
  display.Update(status, seconds(3));
  EXPECT_THAT(console.Take(), Not(HasSubstr("again")));
}

}  // namespace
}  // namespace shoal
