#include "coordinator/run/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::Key;

std::vector<double> Values(const google::protobuf::RepeatedPtrField<proto::MetricValue>& metrics) {
  std::vector<double> values;
  for (const proto::MetricValue& metric : metrics) values.push_back(metric.value());
  return values;
}

constexpr Time At(double seconds) { return Time(static_cast<int64_t>((1000 + seconds) * 1e9)); }

TEST(ProgressTest, MeansAreOverExamples) {
  Progress progress(*MakeMetrics({"accuracy", "mse"}));
  EXPECT_EQ(progress.loss(0), 0);
  EXPECT_THAT(progress.metrics(0), ElementsAre(0, 0));
  progress.StepDone({.epoch = 0, .examples = 30, .loss_sum = 60, .metric_sums = {15, 6}}, At(0));
  progress.StepDone({.epoch = 0, .examples = 10, .loss_sum = 40, .metric_sums = {5, 2}}, At(1));
  progress.StepDone({.epoch = 1, .examples = 8, .loss_sum = 8, .metric_sums = {8, 0}}, At(1));
  EXPECT_DOUBLE_EQ(progress.loss(0), 2.5);
  EXPECT_THAT(progress.metrics(0), ElementsAre(0.5, 0.2));
  EXPECT_DOUBLE_EQ(progress.loss(1), 1);
  EXPECT_EQ(progress.loss(7), 0);
}

TEST(ProgressTest, ARepeatOfAnotherMetricCountDoesNoHarm) {
  Progress progress(*MakeMetrics({"accuracy"}));
  progress.StepDone({.epoch = 0, .examples = 10, .loss_sum = 1, .metric_sums = {}}, At(0));
  progress.StepDone({.epoch = 0, .examples = 10, .loss_sum = 1, .metric_sums = {5, 999, 999}},
                    At(0));
  EXPECT_THAT(progress.metrics(0), ElementsAre(0.25));
}

TEST(ProgressTest, AnEpochLastsFromItsFirstLeaseToItsClose) {
  Progress progress(*MakeMetrics({"accuracy"}));
  progress.EpochBegins(0, At(0));
  progress.EpochBegins(0, At(5));  // only the first counts
  progress.StepDone({.epoch = 0, .examples = 100, .loss_sum = 50, .metric_sums = {80}}, At(6));
  progress.EpochBegins(1, At(7));
  progress.StepDone({.epoch = 1, .examples = 4, .loss_sum = 4, .metric_sums = {4}}, At(8));
  const proto::EpochResult result = progress.CloseEpoch(0, At(10));
  EXPECT_EQ(result.epoch(), 0u);
  EXPECT_DOUBLE_EQ(result.loss(), 0.5);
  EXPECT_THAT(Values(result.metrics()), ElementsAre(0.8));
  EXPECT_DOUBLE_EQ(result.seconds(), 10);
  EXPECT_DOUBLE_EQ(result.examples_per_second(), 10);
  EXPECT_FALSE(result.has_test_loss());
  EXPECT_EQ(progress.loss(0), 0) << "not running any more";
  EXPECT_DOUBLE_EQ(progress.loss(1), 1) << "the next epoch goes on";
}

// A cut at step 20 begins while the steps below it are not all done; those above it are done before
// it is whole.
TEST(ProgressTest, ACutHasTheSumsOfTheStepsBelowItInItsEpoch) {
  Progress progress(*MakeMetrics({"accuracy"}));
  const auto step = [](uint64_t number, double loss, double correct) {
    return Progress::Step{.step = number,
                          .epoch = number / 15,
                          .examples = 10,
                          .loss_sum = loss,
                          .metric_sums = {correct}};
  };
  progress.EpochBegins(1, At(1));
  progress.StepDone(step(14, 1000, 10), At(2));
  progress.StepDone(step(15, 1, 3), At(2));
  progress.BeginCut(20, 1);
  progress.StepDone(step(20, 500, 10), At(3));
  progress.StepDone(step(13, 500, 10), At(3));
  progress.StepDone(step(19, 2, 4), At(4));
  const Manifest::EpochSums sums = progress.CutSums(At(5));
  EXPECT_EQ(sums.examples, 20u);
  EXPECT_EQ(sums.loss, 3);
  EXPECT_THAT(sums.metrics, ElementsAre(7));
  EXPECT_DOUBLE_EQ(sums.seconds, 4);

  Progress later(*MakeMetrics({"accuracy"}));
  later.Resume(1, sums, At(100));
  later.EpochBegins(1, At(101));
  later.StepDone(step(20, 7, 1), At(102));
  const proto::EpochResult result = later.CloseEpoch(1, At(104));
  EXPECT_DOUBLE_EQ(result.loss(), 10 / 30.0);
  EXPECT_THAT(Values(result.metrics()), ElementsAre(8 / 30.0));
  EXPECT_EQ(result.examples(), 30u);
  EXPECT_DOUBLE_EQ(result.seconds(), 8);
}

// After a takeover an epoch may be done on every ps while an earlier one is not.
TEST(ProgressTest, AnEpochOfWhichNothingWasSeenTookNoTime) {
  Progress progress(*MakeMetrics({"accuracy"}));
  const proto::EpochResult result = progress.CloseEpoch(3, At(10));
  EXPECT_EQ(result.seconds(), 0);
  EXPECT_EQ(result.examples_per_second(), 0);
  EXPECT_THAT(Values(result.metrics()), ElementsAre(0));
}

TEST(ProgressTest, RatesAreOverTheLastFiveSeconds) {
  Progress progress(*MakeMetrics({}));
  EXPECT_EQ(progress.steps_per_second(At(0)), 0);
  for (int i = 0; i <= 40; ++i)
    progress.StepDone({.epoch = 0, .examples = 32, .loss_sum = 1, .metric_sums = {}}, At(0.25 * i));
  // Steps at 5, 5.25 ... 10.
  EXPECT_NEAR(progress.steps_per_second(At(10)), 21 / 5.0, 1e-9);
  EXPECT_NEAR(progress.examples_per_second(At(10)), 21 * 32 / 5.0, 1e-9);
  // Nothing more happens: the rate falls, then is 0.
  EXPECT_NEAR(progress.steps_per_second(At(12)), 21 / 7.0, 1e-9);
  EXPECT_EQ(progress.steps_per_second(At(15)), 0);
  EXPECT_EQ(progress.examples_per_second(At(15)), 0);
}

Progress TwoEpochs() {
  Progress progress(*MakeMetrics({"accuracy", "mse"}));
  progress.EpochBegins(0, At(0));
  progress.StepDone({.epoch = 0, .examples = 3, .loss_sum = 1, .metric_sums = {2, 0.125}}, At(1));
  progress.CloseEpoch(0, At(1.5));
  progress.EpochBegins(1, At(1.5));
  progress.StepDone(
      {.epoch = 1, .examples = 1000, .loss_sum = 12.3456789, .metric_sums = {987, 1e-4}}, At(2));
  progress.CloseEpoch(1, At(2.5));
  progress.SetTestResult(0, 0.75, {0.5, 0.0625});
  return progress;
}

TEST(ProgressTest, ATestResultComesLater) {
  const Progress progress = TwoEpochs();
  EXPECT_EQ(progress.history().at(0).test_loss(), 0.75);
  EXPECT_THAT(Values(progress.history().at(0).test_metrics()), ElementsAre(0.5, 0.0625));
  EXPECT_NEAR(progress.history().at(0).loss(), 1 / 3.0, 1e-12);
  EXPECT_FALSE(progress.history().at(1).has_test_loss());
}

TEST(ProgressTest, OnlyEpochsBelowTheGivenOneAreRestored) {
  std::vector<proto::EpochResult> epochs(2);
  epochs[1].set_epoch(1);
  epochs[1].set_loss(0.25);
  Progress one(*MakeMetrics({}));
  one.Restore(epochs, 1);
  EXPECT_THAT(one.history(), ElementsAre(Key(0)));
  Progress both(*MakeMetrics({}));
  both.Restore(epochs, 2);
  EXPECT_EQ(both.history().at(1).loss(), 0.25);
}

TEST(ProgressTest, TheLatestMeansAreThoseOfTheRunningEpochOnceItHasAny) {
  Progress progress(*MakeMetrics({"accuracy"}));
  progress.EpochBegins(0, At(0));
  EXPECT_FALSE(progress.Latest(0).has_value());
  progress.StepDone({.epoch = 0, .examples = 10, .loss_sum = 5, .metric_sums = {8}}, At(1));
  EXPECT_EQ(progress.Latest(0)->loss(), 0.5);
  progress.CloseEpoch(0, At(2));
  progress.EpochBegins(1, At(2));
  EXPECT_EQ(progress.Latest(1)->loss(), 0.5) << "of the epoch before";
  EXPECT_EQ(progress.Latest(1)->epoch(), 0u);
  progress.StepDone({.epoch = 1, .examples = 10, .loss_sum = 1, .metric_sums = {9}}, At(3));
  EXPECT_EQ(progress.Latest(1)->loss(), 0.1);
  EXPECT_THAT(Values(progress.Latest(1)->metrics()), ElementsAre(0.9));
}

TEST(ProgressTest, AKnownEvaluationIsNotOverwritten) {
  Progress progress = TwoEpochs();
  std::vector<proto::EpochResult> earlier(1);
  earlier[0].set_loss(9);
  progress.Restore(earlier, 2);
  EXPECT_EQ(progress.history().at(0).test_loss(), 0.75);
}

// Of two coordinators at once the former evaluates while the latter has read its lines already.
TEST(ProgressTest, AnEvaluationOfAnEarlierCoordinatorIsTaken) {
  Progress progress(*MakeMetrics({"accuracy"}));
  std::vector<proto::EpochResult> earlier(1);
  earlier[0].set_loss(0.5);
  progress.Restore(earlier, 1);
  earlier[0].set_test_loss(0.25);
  proto::MetricValue* const accuracy = earlier[0].add_test_metrics();
  accuracy->set_name("accuracy");
  accuracy->set_value(0.75);
  progress.Restore(earlier, 1);
  EXPECT_EQ(progress.history().at(0).test_loss(), 0.25);
  EXPECT_THAT(Values(progress.history().at(0).test_metrics()), ElementsAre(0.75));
  // What is evaluated stays.
  earlier[0].set_test_loss(9);
  progress.Restore(earlier, 1);
  EXPECT_EQ(progress.history().at(0).test_loss(), 0.25);
}

TEST(ProgressTest, RewindForgetsWhatDidNotHappen) {
  Progress progress = TwoEpochs();
  progress.StepDone({.epoch = 2, .examples = 10, .loss_sum = 10, .metric_sums = {10, 10}}, At(3));
  progress.Rewind(1);
  EXPECT_THAT(progress.history(), ElementsAre(Key(0)));
  EXPECT_EQ(progress.loss(2), 0);
  EXPECT_EQ(progress.metrics(2), std::vector<double>(2, 0));
  // Its time is counted from where it begins again.
  progress.EpochBegins(1, At(20));
  EXPECT_DOUBLE_EQ(progress.CloseEpoch(1, At(21)).seconds(), 1);
}

// Steps of very different losses, of which the sum depends on its order.
TEST(ProgressTest, OfRoundsStepsCountInTheirOrder) {
  const std::vector<double> losses = {1, 1e16, -1e16, 3};
  const auto loss_of = [&losses](const std::vector<uint64_t>& order) {
    Progress progress(*MakeMetrics({"accuracy"}));
    for (const uint64_t step : order) {
      progress.StepOfRound(
          {.step = step, .examples = 1, .loss_sum = losses[step], .metric_sums = {1}}, At(0));
    }
    EXPECT_EQ(progress.loss(0), 0) << "their round is not known to be done";
    progress.CountBelow(4);
    return progress.loss(0);
  };
  EXPECT_EQ(loss_of({3, 1, 0, 2}), loss_of({0, 1, 2, 3}));
  EXPECT_EQ(loss_of({2, 3, 1, 0}), loss_of({0, 1, 2, 3}));
}

TEST(ProgressTest, ACutBeforeARoundHasNoneOfItsSteps) {
  Progress progress(*MakeMetrics({"accuracy"}));
  const auto done = [&progress](uint64_t step) {
    progress.StepOfRound({.step = step, .examples = 10, .loss_sum = 10, .metric_sums = {5}}, At(0));
  };
  for (const uint64_t step : {0, 1, 3}) done(step);
  progress.CountBelow(2);
  progress.BeginCut(2, 0);
  EXPECT_EQ(progress.CutSums(At(1)).examples, 20u);
  done(2);
  progress.CountBelow(4);
  EXPECT_EQ(progress.CutSums(At(1)).examples, 20u);
  progress.Rewind(0);
  progress.StepOfRound({.step = 4, .examples = 10, .loss_sum = 10, .metric_sums = {5}}, At(2));
  progress.Rewind(0);
  progress.CountBelow(9);
  EXPECT_EQ(progress.loss(0), 0) << "it did not happen";
}

}  // namespace
}  // namespace shoal
