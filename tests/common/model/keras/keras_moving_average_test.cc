// From a BatchNormalization to what a step pushes for its statistics.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "common/model/keras_model.h"
#include "common/model/ops/batch_normalization.h"
#include "common/model/training/training_graph.h"
#include "tests/common/loss/loss_of.h"
#include "tests/common/model/parsed_model.h"
#include "tests/common/model/test_models.h"

namespace shoal {
namespace {

Json BatchNormModel(const Json& options) {
  return SequentialJson({nullptr, 4}, {LayerJson("BatchNormalization", "norm", options),
                                       LayerJson("Dense", "dense", {{"units", 2}})});
}

TrainingGraph BuildClassifier(const Graph& model) {
  absl::StatusOr<TrainingGraph> training =
      BuildTrainingGraph(model, *LossOf("SparseCategoricalCrossentropy"));
  EXPECT_TRUE(training.ok()) << training.status();
  return training.ok() ? *std::move(training) : TrainingGraph();
}

// The variables of the layer, by name, and their indices.
std::map<std::string, int> Indices(const Graph& graph) {
  std::map<std::string, int> indices;
  for (const Variable& variable : graph.variables())
    indices[variable.name] = static_cast<int>(indices.size());
  return indices;
}

TEST(KerasMovingAverageTest, AStepPushesTheStatisticsOfItsBatch) {
  const TrainingGraph training = BuildClassifier(Parse(BatchNormModel({{"momentum", 0.75}})).graph);
  const Graph& graph = training.graph;
  const std::map<std::string, int> at = Indices(graph);
  const Node& norm = graph.nodes()[0];
  ASSERT_STREQ(norm.op->type(), "BatchNormalization");
  EXPECT_EQ(training.pushed_values[at.at("norm/moving_mean")], norm.outputs[1]);
  EXPECT_EQ(training.pushed_values[at.at("norm/moving_variance")], norm.outputs[2]);
  for (const auto& [name, index] : at) {
    const bool averages = name.starts_with("norm/moving_");
    const Variable& variable = graph.variables()[index];
    EXPECT_EQ(variable.rule, averages ? UpdateRule::kMovingAverage : UpdateRule::kOptimizer)
        << name;
    EXPECT_EQ(variable.momentum, averages ? 0.75 : 0) << name;
    EXPECT_NE(training.pushed_values[index], kNoValue) << name;
  }
}

// As in Keras: it computes as in inference then, also while what is around it trains.
TEST(KerasMovingAverageTest, AnUntrainableLayerIsFrozen) {
  Json layer = BatchNormModel({{"trainable", false}});
  const TrainingGraph training = BuildClassifier(Parse(layer).graph);
  const std::map<std::string, int> at = Indices(training.graph);
  for (const auto& [name, index] : at) {
    const bool is_frozen = name.starts_with("norm/");
    EXPECT_EQ(training.graph.variables()[index].rule == UpdateRule::kFrozen, is_frozen) << name;
    EXPECT_EQ(training.pushed_values[index] == kNoValue, is_frozen) << name;
  }
  const auto* op = dynamic_cast<const BatchNormalizationOp*>(training.graph.nodes()[0].op.get());
  ASSERT_NE(op, nullptr);
  EXPECT_TRUE(op->frozen);
}

// Its calls are one after the other; the golden case shared_normalization has the numbers.
TEST(KerasMovingAverageTest, ASharedOneTakesOneSampleOfAllItsCalls) {
  Json norm = CalledJson(LayerJson("BatchNormalization", "norm", {{"momentum", 0.5}}), {"x"});
  norm["inbound_nodes"].push_back(Json::parse(R"([["norm", 0, 0, {}]])"));
  norm["inbound_nodes"].push_back(Json::parse(R"([["norm", 1, 0, {}]])"));
  Json top = CalledJson(LayerJson("Dense", "top", {{"units", 2}}), {"norm"});
  top["inbound_nodes"][0][0][1] = 2;
  const Json input = CalledJson(LayerJson("InputLayer", "x", {{"batch_shape", {nullptr, 4}}}), {});
  const TrainingGraph training =
      BuildClassifier(Parse(FunctionalJson({input, norm, top}, "x", "top")).graph);
  for (const Variable& variable : training.graph.variables()) {
    if (variable.rule != UpdateRule::kMovingAverage) continue;
    EXPECT_EQ(variable.momentum, 0.125) << variable.name;
  }
  norm["config"]["trainable"] = false;
  const KerasModel frozen = Parse(FunctionalJson({input, norm, top}, "x", "top"));
  for (const Variable& variable : frozen.graph.variables()) {
    EXPECT_NE(variable.rule, UpdateRule::kMovingAverage) << variable.name;
  }
}

}  // namespace
}  // namespace shoal
