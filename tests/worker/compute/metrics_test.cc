#include "worker/compute/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/common/loss/loss_of.h"

namespace shoal {
namespace {

using ::testing::HasSubstr;
const auto kSparse = LossOf("SparseCategoricalCrossentropy");
const auto kCategorical = LossOf("CategoricalCrossentropy");
const auto kMse = LossOf("MeanSquaredError");

TEST(ResolveMetricTest, AccuracyIsWhatKerasPicks) {
  EXPECT_EQ(*ResolveMetric("accuracy", *kSparse, {kBatch, 10}), Metric::kSparseCategoricalAccuracy);
  EXPECT_EQ(*ResolveMetric("acc", *kCategorical, {kBatch, 10}), Metric::kCategoricalAccuracy);
  EXPECT_EQ(*ResolveMetric("accuracy", *kMse, {kBatch, 3}), Metric::kCategoricalAccuracy);
  EXPECT_EQ(*ResolveMetric("Accuracy", *kMse, {kBatch, 1}), Metric::kBinaryAccuracy);
}

TEST(ResolveMetricTest, KnowsKerasNames) {
  EXPECT_EQ(*ResolveMetric("sparse_categorical_accuracy", *kSparse, {kBatch, 3}),
            Metric::kSparseCategoricalAccuracy);
  EXPECT_EQ(*ResolveMetric("SparseCategoricalAccuracy", *kSparse, {kBatch, 3}),
            Metric::kSparseCategoricalAccuracy);
  EXPECT_EQ(*ResolveMetric("MSE", *kMse, {kBatch, 3}), Metric::kMeanSquaredError);
  EXPECT_EQ(*ResolveMetric("mae", *kMse, {kBatch, 3}), Metric::kMeanAbsoluteError);
  EXPECT_EQ(*ResolveMetric("MeanAbsoluteError", *kMse, {kBatch, 3}), Metric::kMeanAbsoluteError);
}

TEST(ResolveMetricTest, RefusesUnknownNamesWithTheNearest) {
  const auto metric = ResolveMetric("acuracy", *kSparse, {kBatch, 10});
  EXPECT_EQ(metric.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(metric.status().ToString(), HasSubstr("\"acuracy\""));
  EXPECT_THAT(metric.status().ToString(), HasSubstr("did you mean \"accuracy\"?"));
}

TEST(ResolveMetricTest, RefusesWhatTheTargetDoesNotFit) {
  EXPECT_THAT(ResolveMetric("mse", *kSparse, {kBatch, 10}).status().ToString(),
              HasSubstr("class ids"));
  EXPECT_THAT(
      ResolveMetric("sparse_categorical_accuracy", *kCategorical, {kBatch, 10}).status().ToString(),
      HasSubstr("class ids"));
}

TEST(MetricSumTest, SumsOverExamples) {
  const std::vector<float> prediction = {0.1f, 0.9f, 0.8f, 0.2f, 0.3f, 0.7f};
  EXPECT_EQ(MetricSum(Metric::kSparseCategoricalAccuracy, {3, 2}, prediction,
                      std::vector<float>{1, 0, 0}),
            2);
  EXPECT_EQ(MetricSum(Metric::kCategoricalAccuracy, {3, 2}, prediction,
                      std::vector<float>{0, 1, 0, 1, 0, 1}),
            2);
  EXPECT_EQ(
      MetricSum(Metric::kBinaryAccuracy, {3, 2}, prediction, std::vector<float>{0, 1, 1, 1, 1, 0}),
      1.5);
}

TEST(MetricSumTest, ErrorsAreMeansPerExample) {
  const std::vector<float> prediction = {1, 2, 3, 4};
  const std::vector<float> target = {1, 4, 3, 3};
  EXPECT_EQ(MetricSum(Metric::kMeanSquaredError, {2, 2}, prediction, target), 2.5);
  EXPECT_EQ(MetricSum(Metric::kMeanAbsoluteError, {2, 2}, prediction, target), 1.5);
}

TEST(MetricSumTest, InnerAxesAreAveraged) {
  const std::vector<float> prediction = {0, 1, 1, 0, 0, 1, 0, 1};  // [2, 2, 2]
  EXPECT_EQ(MetricSum(Metric::kSparseCategoricalAccuracy, {2, 2, 2}, prediction,
                      std::vector<float>{1, 1, 1, 1}),
            1.5);
}

TEST(CheckLabelsTest, NamesTheExampleAndTheLabel) {
  const auto check = [](std::vector<float> labels, int64_t examples) {
    return CheckLabels({.examples = examples, .target = labels}, 10);
  };
  EXPECT_TRUE(check({0, 9, 4}, 3).ok());
  for (const float bad : {-1.0f, 10.0f, 2.5f, NAN, INFINITY}) {
    const absl::Status status = check({0, bad, 4}, 3);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.ToString(), HasSubstr("example 1 "));
  }
  EXPECT_EQ(check({0, 0, 10, 0}, 2).message(),
            "example 1 of the batch has the label 10; the model has 10 outputs, one per class, so "
            "that a label must be a whole number from 0 to 9");
}

TEST(CheckLabelsTest, NamesTheFileAndTheIndexInIt) {
  const std::vector<float> labels = {0, 0, 1};
  const std::vector<uint64_t> indices = {7, 0, 59999};
  const absl::Status status = CheckLabels(
      {.examples = 3, .target = labels, .target_file = "/data/labels", .indices = indices}, 1);
  EXPECT_EQ(status.message(),
            "/data/labels: example 59999, counted from 0, has the label 1; the model has 1 output, "
            "one per class, so that a label must be a whole number from 0 to 0");
}

}  // namespace
}  // namespace shoal
