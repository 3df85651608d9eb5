#include "coordinator/nan_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "coordinator/cuts/checkpointer.h"
#include "tests/fakes/fake_loop.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class NanWatchTest : public testing::Test {
 protected:
  NanWatch Watch(uint64_t stop_after_steps) const {
    return NanWatch({.checkpointer = &checkpointer_,
                     .run_dir = "/runs/ada",
                     .stop_after_steps = stop_after_steps});
  }
  static StoredCheckpoint Stored(uint64_t step, const std::string& not_finite = "") {
    StoredCheckpoint stored{.directory = "/runs/ada/checkpoints/step-" + std::to_string(step)};
    stored.manifest.cut_step = step;
    stored.manifest.not_finite = not_finite;
    return stored;
  }

  FakeLoop loop_;
  Checkpointer checkpointer_{{.loop = &loop_}};
};

TEST_F(NanWatchTest, TooManyLossesInARowFailTheRun) {
  NanWatch watch = Watch(3);
  EXPECT_FALSE(watch.OnLoss(7, NAN, 0).has_value());
  EXPECT_FALSE(watch.OnLoss(8, INFINITY, 1).has_value());
  EXPECT_THAT(watch.OnLoss(9, NAN, 0).value_or(""),
              AllOf(HasSubstr(" 3 "), HasSubstr(" 9"), HasSubstr("$.stop_after_nan_steps")));
}

TEST_F(NanWatchTest, AFiniteLossStartsTheCountAgain) {
  NanWatch watch = Watch(2);
  EXPECT_FALSE(watch.OnLoss(0, NAN, 0).has_value());
  EXPECT_FALSE(watch.OnLoss(1, 0.5, 0).has_value());
  EXPECT_FALSE(watch.OnLoss(2, NAN, 0).has_value());
  EXPECT_TRUE(watch.OnLoss(3, NAN, 0).has_value());
}

TEST_F(NanWatchTest, ANewTimelineStartsTheCountAgain) {
  NanWatch watch = Watch(2);
  EXPECT_FALSE(watch.OnLoss(5, NAN, 0).has_value());
  watch.Reset();
  EXPECT_FALSE(watch.OnLoss(4, NAN, 0).has_value());
  EXPECT_TRUE(watch.OnLoss(5, NAN, 0).has_value());
}

TEST_F(NanWatchTest, WithoutALimitTheRunGoesOn) {
  NanWatch watch = Watch(0);
  for (uint64_t step = 0; step < 1000; ++step) EXPECT_FALSE(watch.OnLoss(step, NAN, 0).has_value());
}

TEST_F(NanWatchTest, TheAdviceNamesTheNewestFiniteCheckpoint) {
  const NanWatch watch = Watch(3);
  EXPECT_THAT(watch.Advice(), AllOf(HasSubstr("--run_dir=/runs/ada"), Not(HasSubstr("step-"))));
  checkpointer_.SetLast(Stored(4));
  checkpointer_.SetLast(Stored(8, "dense/kernel"));
  EXPECT_THAT(watch.Advice(), AllOf(HasSubstr("--run_dir=/runs/ada"), HasSubstr("step-4"),
                                    Not(HasSubstr("step-8"))));
}

TEST_F(NanWatchTest, WithoutAFiniteCheckpointTheAdviceNamesNone) {
  checkpointer_.SetStored({Stored(8, "dense/kernel"), Stored(4, "dense/bias")});
  EXPECT_THAT(Watch(3).Advice(), AllOf(HasSubstr("/runs/ada"), Not(HasSubstr("step-"))));
}

}  // namespace
}  // namespace shoal
