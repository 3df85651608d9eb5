#include "cli/display/live_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace shoal {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

proto::StatusReply InTheMiddle() {
  proto::StatusReply status;
  status.set_phase("training");
  status.set_epoch(1);
  status.set_epochs(5);
  status.set_steps_done(1407);
  status.set_steps_done_here(1407);
  status.set_total_steps(4690);
  status.set_steps_per_epoch(938);
  status.set_steps_per_second(45.6);
  status.set_examples_per_second(2918.4);
  status.set_loss(0.3121);
  auto* metric = status.add_metrics();
  metric->set_name("accuracy");
  metric->set_value(0.8864);
  return status;
}

int Columns(const std::string& line) {
  return static_cast<int>(
      std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

TEST(LiveLineTest, ShowsEverythingWhereThereIsRoom) {
  EXPECT_EQ(
      FormatLiveLine(InTheMiddle(), {.terminal = true, .width = 120}),
      "epoch 2/5  ===============---------------  step 1407/4690  2,918 examples/s  loss 0.3121  "
      "accuracy 0.8864  1:12 left");
}

TEST(LiveLineTest, BarIsDrawnInUnicodeAndColourWhereTheTerminalHasThem) {
  const std::string plain = FormatLiveLine(InTheMiddle(), {.width = 120, .unicode = true});
  EXPECT_THAT(plain, HasSubstr("━━━───"));
  EXPECT_THAT(plain, Not(HasSubstr("\x1b")));
  const std::string colored = FormatLiveLine(InTheMiddle(), {.width = 120, .color = true});
  EXPECT_THAT(colored, HasSubstr("\x1b[32m==="));
  EXPECT_THAT(colored, HasSubstr("\x1b[0m"));
}

TEST(LiveLineTest, FitsEveryWidth) {
  for (const bool unicode : {false, true}) {
    for (int width = 2; width < 200; ++width) {
      const std::string line = FormatLiveLine(InTheMiddle(), {.width = width, .unicode = unicode});
      EXPECT_LE(Columns(line), std::max(1, width - 3)) << line;
      EXPECT_FALSE(line.empty());
    }
  }
}

TEST(LiveLineTest, LeavesOutWhatMattersLeastFirst) {
  // Too narrow for a bar, then for the rate, then for the metric, then for loss and time.
  const std::string without_bar = FormatLiveLine(InTheMiddle(), {.width = 88});
  EXPECT_THAT(without_bar, Not(HasSubstr("==")));
  EXPECT_THAT(without_bar, HasSubstr("examples/s"));
  EXPECT_THAT(
      FormatLiveLine(InTheMiddle(), {.width = 77}),
      testing::AllOf(Not(HasSubstr("examples/s")), HasSubstr("accuracy"), HasSubstr("left")));
  EXPECT_THAT(FormatLiveLine(InTheMiddle(), {.width = 56}),
              testing::AllOf(Not(HasSubstr("accuracy")), HasSubstr("loss"), HasSubstr("step")));
  EXPECT_EQ(FormatLiveLine(InTheMiddle(), {.width = 12}), "epoch 2/5");
  EXPECT_EQ(FormatLiveLine(InTheMiddle(), {.width = 8}), "epoch");
}

TEST(LiveLineTest, SaysWhatIsWaitedFor) {
  proto::StatusReply status;
  status.set_phase("claiming");
  status.add_waiting("ps 0 at 127.0.0.1:3333: not reachable for 12 s");
  status.add_waiting("ps 1 at 127.0.0.1:3334: not reachable for 12 s");
  EXPECT_EQ(FormatLiveLine(status, {.width = 120}),
            "starting, waiting: ps 0 at 127.0.0.1:3333: not reachable for 12 s (and 1 more)");

  status = InTheMiddle();
  status.add_waiting("no worker is ready");
  EXPECT_THAT(FormatLiveLine(status, {.width = 120}), HasSubstr("waiting: no worker"));
  status.set_phase("stopping");
  EXPECT_THAT(FormatLiveLine(status, {.width = 120}),
              testing::AllOf(HasSubstr("stopping"), HasSubstr("no worker")));
}

TEST(LiveLineTest, ShowsEvaluation) {
  proto::StatusReply status = InTheMiddle();
  status.set_evaluation_batches(157);
  status.set_evaluation_batches_done(12);
  EXPECT_THAT(FormatLiveLine(status, {.width = 140}), HasSubstr("evaluating 12/157"));
}

TEST(LiveLineTest, HasNoMeansBeforeTheFirstStep) {
  proto::StatusReply status = InTheMiddle();
  status.clear_loss();
  status.clear_metrics();
  const std::string line = FormatLiveLine(status, {.width = 120});
  EXPECT_THAT(line, Not(HasSubstr("loss")));
  EXPECT_THAT(line, Not(HasSubstr("accuracy")));
}

TEST(LiveLineTest, TheEndHasAFullBarAndNoTimeLeft) {
  proto::StatusReply status = InTheMiddle();
  status.set_phase("finished");
  status.set_epoch(5);
  status.set_steps_done(4690);
  const std::string line = FormatLiveLine(status, {.width = 120});
  EXPECT_THAT(line, StartsWith("epoch 5/5"));
  EXPECT_THAT(line, Not(HasSubstr("left")));
}

TEST(LiveLineTest, WithoutAWorkerThereIsNoTimeLeft) {
  proto::StatusReply status = InTheMiddle();
  for (const char* state : {"left", "lost", "draining"}) {
    proto::TaskStatus* worker = status.add_tasks();
    worker->set_type("worker");
    worker->set_state(state);
  }
  status.add_tasks()->set_type("ps");
  EXPECT_THAT(FormatProgressLine(status), Not(HasSubstr("left")));
  status.mutable_tasks(0)->set_state("up");
  EXPECT_THAT(FormatProgressLine(status), HasSubstr("1:12 left"));
}

// A coordinator that took over knows what is done; of how many steps, a worker tells it.
TEST(LiveLineTest, DoneStepsAreShownBeforeThereIsATotal) {
  proto::StatusReply status;
  status.set_phase("training");
  status.set_steps_done(512);
  EXPECT_THAT(FormatProgressLine(status), testing::HasSubstr("step 512"));
}

TEST(LiveLineTest, SurvivesNonsense) {
  proto::StatusReply status;
  status.set_total_steps(1);
  status.set_steps_done(~uint64_t{0});
  status.set_epoch(~uint64_t{0});
  status.set_steps_per_epoch(~uint64_t{0});
  status.set_examples_per_second(1e300);
  status.set_loss(-1e300);
  EXPECT_LT(Columns(FormatLiveLine(status, {.width = 80})), 80);
  EXPECT_EQ(FormatLiveLine({}, {.width = 80}), "");
}

TEST(ProgressLineTest, HasNoBar) {
  EXPECT_EQ(FormatProgressLine(InTheMiddle()),
            "epoch 2/5  step 1407/4690  2,918 examples/s  loss 0.3121  accuracy 0.8864  1:12 left");
}

TEST(EpochLineTest, NamesTrainingAndTestResults) {
  proto::EpochResult epoch;
  epoch.set_epoch(1);
  epoch.set_loss(0.312);
  epoch.set_seconds(12.44);
  epoch.set_examples_per_second(4830.2);
  auto* metric = epoch.add_metrics();
  metric->set_name("accuracy");
  metric->set_value(0.886);
  EXPECT_EQ(FormatEpochLine(epoch, 5),
            "epoch 2/5: loss 0.3120, accuracy 0.8860, 12.4 s, 4,830 examples/s");
  epoch.set_test_loss(0.33);
  metric = epoch.add_test_metrics();
  metric->set_name("accuracy");
  metric->set_value(0.881);
  EXPECT_EQ(
      FormatEpochLine(epoch, 5),
      "epoch 2/5: loss 0.3120, accuracy 0.8860, test loss 0.3300, test accuracy 0.8810, 12.4 s, "
      "4,830 examples/s");
}

}  // namespace
}  // namespace shoal
