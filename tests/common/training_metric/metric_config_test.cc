#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/training_metric/metric.h"
#include "common/training_metric/metric_table.h"
#include "tests/common/json/documented_rows.h"
#include "tests/common/loss/loss_of.h"

namespace shoal {
namespace {

using nlohmann::json;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

std::shared_ptr<const Metric> Named(const std::string& name) {
  auto metrics = MakeMetrics({name});
  EXPECT_TRUE(metrics.ok()) << metrics.status();
  return metrics.ok() ? metrics->front() : nullptr;
}

std::string Error(const json& value) {
  JsonErrors errors("");
  ReadMetric(value, "$.metrics[0]", &errors);
  return std::string(errors.ToStatus().message());
}

TEST(MetricConfigTest, ReadsNamesAsKerasDoes) {
  EXPECT_EQ(Named("mse")->config(), R"({"class_name":"MeanSquaredError","config":{"name":"mse"}})");
  EXPECT_EQ(Named("AUC")->name(), "AUC");
  EXPECT_EQ(Named("acc")->config(), "accuracy");
  const auto auc = Named(R"({"class_name": "AUC", "config": {"name": "roc", "dtype": "float32",
      "num_thresholds": 50, "curve": "PR", "summation_method": "minoring", "multi_label": false,
      "num_labels": null, "label_weights": null, "from_logits": true}})");
  EXPECT_EQ(auc->name(), "roc");
  EXPECT_EQ(auc->sum_count(), 100);
  EXPECT_EQ(Named(auc->config())->config(), auc->config());
}

// What keras.metrics.serialize() gives of a function.
TEST(MetricConfigTest, ReadsAFunctionOfKerasAsItsPlainName) {
  for (const std::string name : {"binary_accuracy", "mse"}) {
    const auto metric = Named(R"({"module": "builtins", "class_name": "function", "config": ")" +
                              name + R"(", "registered_name": "function"})");
    ASSERT_NE(metric, nullptr);
    EXPECT_EQ(metric->name(), name);
    EXPECT_EQ(metric->config(), Named(name)->config());
  }
  EXPECT_THAT(Error({{"class_name", "function"}, {"config", "f1"}}),
              HasSubstr("$.metrics[0].config: is \"f1\""));
}

TEST(MetricConfigTest, AMetricOfOnesOwnIsRejected) {
  const json own = {{"module", nullptr},
                    {"class_name", "AUC"},
                    {"config", {{"name", "auc"}}},
                    {"registered_name", "AUC"}};
  EXPECT_THAT(Error(own), HasSubstr("$.metrics[0].registered_name: is \"AUC\""));
}

TEST(MetricConfigTest, ErrorsNameWhatWouldBeRight) {
  EXPECT_THAT(Error("acuracy"), HasSubstr("\"Accuracy\""));
  EXPECT_EQ(Error("rmse"),
            "$.metrics[0]: is \"rmse\", a metric that Shoal lacks; in Keras it is "
            "\"RootMeanSquaredError\"");
  EXPECT_THAT(Error({{"class_name", "AUC"}, {"config", {{"curve", "pr"}}}}),
              HasSubstr("$.metrics[0].config.curve: is \"pr\""));
  EXPECT_THAT(Error({{"class_name", "Precision"}, {"config", {{"thresholds", {0.1, 0.2}}}}}),
              HasSubstr("$.metrics[0].config.thresholds: is [0.1,0.2]"));
  EXPECT_THAT(Error({{"class_name", "Recall"}, {"config", {{"name", "val_recall"}}}}),
              HasSubstr("$.metrics[0].config.name: is \"val_recall\""));
  EXPECT_THAT(Error({{"class_name", "Recall"}, {"config", {{"name", "a,b"}}}}), HasSubstr("name"));
  EXPECT_THAT(Error({{"class_name", "Recall"}, {"config", {{"treshold", 1}}}}),
              HasSubstr("$.metrics[0].config.treshold: "));
}

TEST(MetricConfigTest, TheDocumentHasTheRowsOfTheTable) {
  EXPECT_THAT(DocumentedRows("metric_table.cc"), ElementsAreArray(MetricTable().Docs(true)));
}

TEST(MetricForTest, AccuracyIsWhatKerasPicks) {
  const auto picked = [](const std::string& loss, const Shape& output) {
    const auto metric = MetricFor(Named("accuracy"), *LossOf(loss), output);
    EXPECT_TRUE(metric.ok()) << metric.status();
    return json::parse((*metric)->config())["class_name"].get<std::string>();
  };
  EXPECT_EQ(picked("SparseCategoricalCrossentropy", {kBatch, 10}), "SparseCategoricalAccuracy");
  EXPECT_EQ(picked("CategoricalCrossentropy", {kBatch, 10}), "CategoricalAccuracy");
  EXPECT_EQ(picked("MeanSquaredError", {kBatch, 3}), "CategoricalAccuracy");
  EXPECT_EQ(picked("BinaryCrossentropy", {kBatch, 1}), "BinaryAccuracy");
}

TEST(MetricForTest, APickedMetricKeepsItsNameAndItsWeights) {
  const auto weighted = MakeMetrics({}, {ConfigNamed(*Named("accuracy"), "weighted_accuracy")});
  ASSERT_TRUE(weighted.ok()) << weighted.status();
  EXPECT_EQ(weighted->front()->name(), "weighted_accuracy");
  const auto picked =
      MetricFor(weighted->front(), *LossOf("SparseCategoricalCrossentropy"), {kBatch, 10});
  ASSERT_TRUE(picked.ok()) << picked.status();
  EXPECT_EQ((*picked)->name(), "weighted_accuracy");
  EXPECT_TRUE((*picked)->weighted());
  EXPECT_THAT((*picked)->config(), HasSubstr("SparseCategoricalAccuracy"));
}

TEST(MetricForTest, RejectsWhatTheTargetDoesNotFit) {
  const auto error = [](const std::string& name, const std::string& loss) {
    return MetricFor(Named(name), *LossOf(loss), {kBatch, 10}).status().ToString();
  };
  EXPECT_THAT(error("mse", "SparseCategoricalCrossentropy"), HasSubstr("takes a value per output"));
  EXPECT_THAT(error("auc", "SparseCategoricalCrossentropy"), HasSubstr("takes a value per output"));
  EXPECT_THAT(error("sparse_categorical_accuracy", "CategoricalCrossentropy"),
              HasSubstr("takes class ids"));
}

}  // namespace
}  // namespace shoal
