// Results against Keras's (testdata/make_keras_metrics.py), the batches being spread over workers.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/training_metric/metric.h"

namespace shoal {
namespace {

using nlohmann::json;

json KerasMetrics() {
  std::ifstream file(std::string(SHOAL_SOURCE_DIR) +
                     "/tests/common/training_metric/testdata/keras_metrics.json");
  return json::parse(file);
}

TEST(MetricFiguresTest, AreThoseOfKerasHoweverTheExamplesAreSpread) {
  const json keras = KerasMetrics();
  ASSERT_GT(keras["cases"].size(), 20u);
  for (const json& wanted : keras["cases"]) {
    SCOPED_TRACE(wanted.dump());
    const json& data = keras["data"][wanted["data"].get<std::string>()];
    const Shape shape = data["shape"].get<Shape>();
    const auto prediction = data["prediction"].get<std::vector<float>>();
    const auto target = data["target"].get<std::vector<float>>();
    const size_t width = prediction.size() / shape[0], target_width = target.size() / shape[0];
    const json config = {{"class_name", wanted["class_name"]}, {"config", wanted["config"]}};
    const auto weights = keras["weights"].get<std::vector<float>>();
    const auto metrics = MakeMetrics({config.dump()}, {config.dump()});
    ASSERT_TRUE(metrics.ok()) << metrics.status();
    for (const size_t batch_size : {1, 7, 41}) {
      std::vector<double> sums(SumCount(*metrics));
      for (size_t begin = 0; begin < static_cast<size_t>(shape[0]); begin += batch_size) {
        const size_t count = std::min(batch_size, shape[0] - begin);
        Shape batch_shape = shape;
        batch_shape[0] = static_cast<int64_t>(count);
        // What a worker reports of a batch, and the coordinator adds.
        std::vector<double> of_batch(sums.size());
        AddToSums(*metrics,
                  {batch_shape, std::span(prediction).subspan(begin * width, count * width),
                   std::span(target).subspan(begin * target_width, count * target_width),
                   std::span(weights).subspan(begin, count)},
                  of_batch);
        for (size_t i = 0; i < sums.size(); ++i) sums[i] += of_batch[i];
      }
      const std::vector<double> figures =
          MetricResults(*metrics, sums, static_cast<double>(shape[0]));
      for (const bool weighted : {false, true}) {
        const double expected = wanted[weighted ? "weighted" : "result"];
        EXPECT_NEAR(figures[weighted], expected, 2e-5 * std::max(1.0, std::abs(expected)))
            << (weighted ? "weighted" : "not weighted");
      }
    }
  }
}

TEST(MetricFiguresTest, WeightedOnesCountAllAlikeWhereThereAreNoWeights) {
  const auto metrics = *MakeMetrics({"mse"}, {"mse", "precision"});
  std::vector<double> sums(SumCount(metrics));
  ASSERT_EQ(sums.size(), 1 + 2 + 3u);
  const std::vector<float> prediction = {1, 0.25}, target = {0, 1};
  AddToSums(metrics, {{2, 1}, prediction, target}, sums);
  EXPECT_EQ(MetricResults(metrics, sums, 2), (std::vector<double>{0.78125, 0.78125, 0}));
}

TEST(MetricFiguresTest, WeightsThatAreAllZeroGiveZero) {
  const auto metrics = *MakeMetrics({}, {"mse"});
  std::vector<double> sums(SumCount(metrics));
  const std::vector<float> ones = {1, 1}, zeros = {0, 0};
  AddToSums(metrics, {{2, 1}, ones, zeros, zeros}, sums);
  EXPECT_EQ(MetricResults(metrics, sums, 2), std::vector<double>{0});
}

TEST(MetricFiguresTest, WithoutExamplesAreZero) {
  const auto metrics = MakeMetrics({"accuracy", R"({"class_name": "AUC"})"});
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_EQ(SumCount(*metrics), 401);
  EXPECT_EQ(MetricResults(*metrics, {}, 0), (std::vector<double>{0, 0}));
}

}  // namespace
}  // namespace shoal
