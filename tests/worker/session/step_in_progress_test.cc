#include "worker/session/step_in_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal {
namespace {

using std::chrono::microseconds;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(StepInProgressTest, IsDoneOnceComputedAndApplied) {
  StepInProgress step;
  step.Begin(7);
  EXPECT_EQ(step.number(), 7u);
  step.Computed({.examples = 16});
  EXPECT_FALSE(step.done());
  step.Applied();
  EXPECT_TRUE(step.done());
  step.Begin(8);
  EXPECT_FALSE(step.done());
  step.Applied();  // the last answer may come before the outcome
  EXPECT_FALSE(step.done());
  step.Computed({.examples = 16});
  EXPECT_TRUE(step.done());
}

TEST(StepInProgressTest, IsBegunWithItsFirstPush) {
  StepInProgress step;
  step.Begin(7);
  EXPECT_FALSE(step.begun());
  EXPECT_EQ(step.begun_below(), 0u);
  EXPECT_TRUE(step.MayPush({0, 1}));
  EXPECT_TRUE(step.begun());
  EXPECT_EQ(step.begun_below(), 8u);
  step.Begin(5);
  EXPECT_TRUE(step.MayPush({0, 1}));
  EXPECT_EQ(step.begun_below(), 8u) << "it never falls in a timeline";
  step.CountAsBegun(9);
  EXPECT_EQ(step.begun_below(), 10u);
  step.CountAsBegun(3);
  EXPECT_EQ(step.begun_below(), 10u);
}

TEST(StepInProgressTest, AHaltHoldsBackAStepThatIsNotBegun) {
  StepInProgress step;
  step.Begin(7);
  step.Halt();
  EXPECT_TRUE(step.halted());
  EXPECT_FALSE(step.MayPush({0, 1}));
  EXPECT_FALSE(step.MayPush({1, 0}));
  EXPECT_FALSE(step.begun());
  EXPECT_THAT(step.EndHalt(), ElementsAre(ChunkId{0, 1}, ChunkId{1, 0}));
  EXPECT_FALSE(step.halted());
  EXPECT_TRUE(step.MayPush({0, 1}));
  EXPECT_THAT(step.EndHalt(), IsEmpty());
}

TEST(StepInProgressTest, AHaltLetsABegunStepPushOn) {
  StepInProgress step;
  step.Begin(7);
  EXPECT_TRUE(step.MayPush({0, 0}));
  step.Halt();
  EXPECT_TRUE(step.MayPush({0, 1}));
  EXPECT_THAT(step.EndHalt(), IsEmpty());
}

TEST(StepInProgressTest, CancelDropsWhatAHaltHoldsBack) {
  StepInProgress step;
  step.Begin(7);
  step.Halt();
  step.MayPush({0, 1});
  step.Cancel();
  EXPECT_TRUE(step.halted());
  EXPECT_THAT(step.EndHalt(), IsEmpty());
}

TEST(StepInProgressTest, AnotherTimelineHasNoHaltAndNoBegunStep) {
  StepInProgress step;
  step.Begin(7);
  EXPECT_TRUE(step.MayPush({0, 0}));
  step.Halt();
  step.Begin(8);
  EXPECT_FALSE(step.MayPush({0, 1}));
  step.Reset();
  EXPECT_FALSE(step.halted());
  EXPECT_EQ(step.begun_below(), 0u);
  EXPECT_THAT(step.EndHalt(), IsEmpty());
}

TEST(StepInProgressTest, ReportsItsSumsAndTimes) {
  StepInProgress step;
  step.Begin(7);
  step.Computed(
      {.examples = 16, .loss_sum = 32, .metric_sums = {8, 1}, .input_wait_us = 3, .compute_us = 5});
  const proto::StepDone done = step.Report(microseconds(20));
  EXPECT_EQ(done.step(), 7u);
  EXPECT_EQ(done.examples(), 16u);
  EXPECT_EQ(done.loss_sum(), 32);
  EXPECT_THAT(done.metric_sums(), ElementsAre(8, 1));
  EXPECT_EQ(done.input_wait_us(), 3u);
  EXPECT_EQ(done.compute_us(), 5u);
  EXPECT_EQ(done.exchange_us(), 12u);
  EXPECT_FALSE(done.already_applied());
  EXPECT_EQ(step.Report(microseconds(7)).exchange_us(), 0u) << "the clocks differ";
}

}  // namespace
}  // namespace shoal
