#include "coordinator/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Key;

constexpr Time At(double seconds) { return Time(static_cast<int64_t>((1000 + seconds) * 1e9)); }

TEST(ProgressTest, MeansAreOverExamples) {
  Progress progress({"accuracy", "mse"});
  EXPECT_EQ(progress.loss(0), 0);
  EXPECT_THAT(progress.metrics(0), ElementsAre(0, 0));
  progress.StepDone(0, 30, 60, {15, 6}, At(0));
  progress.StepDone(0, 10, 40, {5, 2}, At(1));
  progress.StepDone(1, 8, 8, {8, 0}, At(1));
  EXPECT_DOUBLE_EQ(progress.loss(0), 2.5);
  EXPECT_THAT(progress.metrics(0), ElementsAre(0.5, 0.2));
  EXPECT_DOUBLE_EQ(progress.loss(1), 1);
  EXPECT_EQ(progress.loss(7), 0);
}

TEST(ProgressTest, ARepeatOfAnotherMetricCountDoesNoHarm) {
  Progress progress({"accuracy"});
  progress.StepDone(0, 10, 1, {}, At(0));
  progress.StepDone(0, 10, 1, {5, 999, 999}, At(0));
  EXPECT_THAT(progress.metrics(0), ElementsAre(0.25));
}

TEST(ProgressTest, AnEpochLastsFromItsFirstLeaseToItsClose) {
  Progress progress({"accuracy"});
  progress.EpochBegins(0, At(0));
  progress.EpochBegins(0, At(5));  // only the first counts
  progress.StepDone(0, 100, 50, {80}, At(6));
  progress.EpochBegins(1, At(7));
  progress.StepDone(1, 4, 4, {4}, At(8));
  const EpochRecord record = progress.CloseEpoch(0, At(10));
  EXPECT_EQ(record.epoch, 0u);
  EXPECT_DOUBLE_EQ(record.loss, 0.5);
  EXPECT_THAT(record.metrics, ElementsAre(0.8));
  EXPECT_DOUBLE_EQ(record.seconds, 10);
  EXPECT_DOUBLE_EQ(record.examples_per_second, 10);
  EXPECT_FALSE(record.test_loss.has_value());
  EXPECT_EQ(progress.loss(0), 0) << "not running any more";
  EXPECT_DOUBLE_EQ(progress.loss(1), 1) << "the next epoch goes on";
}

// After a takeover an epoch may be done on every ps while an earlier one is not.
TEST(ProgressTest, AnEpochOfWhichNothingWasSeenTookNoTime) {
  Progress progress({"accuracy"});
  const EpochRecord record = progress.CloseEpoch(3, At(10));
  EXPECT_EQ(record.seconds, 0);
  EXPECT_EQ(record.examples_per_second, 0);
  EXPECT_THAT(record.metrics, ElementsAre(0));
}

TEST(ProgressTest, RatesAreOverTheLastFiveSeconds) {
  Progress progress({});
  EXPECT_EQ(progress.steps_per_second(At(0)), 0);
  for (int i = 0; i <= 40; ++i) progress.StepDone(0, 32, 1, {}, At(0.25 * i));
  // Steps at 5, 5.25 ... 10.
  EXPECT_NEAR(progress.steps_per_second(At(10)), 21 / 5.0, 1e-9);
  EXPECT_NEAR(progress.examples_per_second(At(10)), 21 * 32 / 5.0, 1e-9);
  // Nothing more happens: the rate falls, then is 0.
  EXPECT_NEAR(progress.steps_per_second(At(12)), 21 / 7.0, 1e-9);
  EXPECT_EQ(progress.steps_per_second(At(15)), 0);
  EXPECT_EQ(progress.examples_per_second(At(15)), 0);
}

Progress TwoEpochs() {
  Progress progress({"accuracy", "mse"});
  progress.EpochBegins(0, At(0));
  progress.StepDone(0, 3, 1, {2, 0.125}, At(1));
  progress.CloseEpoch(0, At(1.5));
  progress.EpochBegins(1, At(1.5));
  progress.StepDone(1, 1000, 12.3456789, {987, 1e-4}, At(2));
  progress.CloseEpoch(1, At(2.5));
  progress.SetTestResult(0, 0.75, {0.5, 0.0625});
  return progress;
}

constexpr char kTwoEpochs[] =
    "epoch,loss,accuracy,mse,val_loss,val_accuracy,val_mse,seconds,examples_per_second\n"
    "1,0.333333,0.666667,0.0416667,0.75,0.5,0.0625,1.500,2.0\n"
    "2,0.0123457,0.987,1e-07,,,,1.000,1000.0\n";

TEST(ProgressTest, HistoryCsv) {
  EXPECT_EQ(TwoEpochs().HistoryCsv(), kTwoEpochs);
  EXPECT_EQ(Progress({}).HistoryCsv(), "epoch,loss,val_loss,seconds,examples_per_second\n");
}

TEST(ProgressTest, HistoryCsvIsReadBack) {
  Progress progress({"accuracy", "mse"});
  progress.ReadHistoryCsv(kTwoEpochs, 2);
  EXPECT_EQ(progress.HistoryCsv(), kTwoEpochs);
  ASSERT_TRUE(progress.history().at(0).test_loss.has_value());
  EXPECT_THAT(progress.history().at(0).test_metrics, ElementsAre(0.5, 0.0625));
  EXPECT_FALSE(progress.history().at(1).test_loss.has_value());
  EXPECT_THAT(progress.history().at(1).test_metrics, IsEmpty());
}

TEST(ProgressTest, OnlyEpochsBelowTheGivenOneAreRead) {
  Progress progress({"accuracy", "mse"});
  progress.ReadHistoryCsv(kTwoEpochs, 1);
  EXPECT_THAT(progress.history(), ElementsAre(Key(0)));
  Progress none({"accuracy", "mse"});
  none.ReadHistoryCsv(kTwoEpochs, 0);
  EXPECT_THAT(none.history(), IsEmpty());
}

TEST(ProgressTest, DamagedLinesAreLeftOut) {
  Progress progress({"accuracy"});
  progress.ReadHistoryCsv(
      "epoch,loss,accuracy,val_loss,val_accuracy,seconds,examples_per_second\n"
      "\n"
      "1,0.5,0.5\n"                      // cut off
      "1,0.5,0.5,,,1.0,2.0,3.0\n"        // a field too many
      "nan,0.5,0.5,,,1.0,2.0\n"          // no epoch
      "inf,0.5,0.5,,,1.0,2.0\n"          //
      "0,0.5,0.5,,,1.0,2.0\n"            // before the first
      "-1,0.5,0.5,,,1.0,2.0\n"           //
      "1.5,0.5,0.5,,,1.0,2.0\n"          // between two
      "1,,0.5,,,1.0,2.0\n"               // only a test result may be missing
      "1,0.5,0.5,,,,2.0\n"               //
      "1,zero,0.5,,,1.0,2.0\n"           //
      "\x01\xff\x7f\n"                   //
      "2,0.25,0.5,0.125,0.75,1.0,2.0\n"  // whole
      "3,0.5,0.5,0.1,,1.0,2.0\n"         // half a test result
      "99,0.5,0.5,,,1.0,2.0\n"           // beyond
      "3,0.5,0.5,0.1,",                  // cut off at the end
      4);
  EXPECT_THAT(progress.history(), ElementsAre(Key(1)));
  EXPECT_DOUBLE_EQ(progress.history().at(1).loss, 0.25);
  EXPECT_DOUBLE_EQ(*progress.history().at(1).test_loss, 0.125);
}

TEST(ProgressTest, ALossThatIsNoNumberIsKept) {
  Progress progress({});
  progress.StepDone(0, 1, NAN, {}, At(0));
  progress.CloseEpoch(0, At(1));
  Progress read({});
  read.ReadHistoryCsv(progress.HistoryCsv(), 1);
  ASSERT_THAT(read.history(), ElementsAre(Key(0)));
  EXPECT_TRUE(std::isnan(read.history().at(0).loss));
}

TEST(ProgressTest, RewindForgetsWhatDidNotHappen) {
  Progress progress = TwoEpochs();
  progress.StepDone(2, 10, 10, {10, 10}, At(3));
  progress.Rewind(1);
  EXPECT_THAT(progress.history(), ElementsAre(Key(0)));
  EXPECT_EQ(progress.loss(2), 0);
  EXPECT_EQ(progress.metrics(2), std::vector<double>(2, 0));
  // Its time is counted from where it begins again.
  progress.EpochBegins(1, At(20));
  EXPECT_DOUBLE_EQ(progress.CloseEpoch(1, At(21)).seconds, 1);
}

}  // namespace
}  // namespace shoal
