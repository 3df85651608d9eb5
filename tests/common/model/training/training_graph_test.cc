#include "common/model/training/training_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/model/ops/loss.h"
#include "common/model/ops/unary.h"
#include "tests/common/loss/loss_of.h"
#include "tests/common/model/parsed_model.h"
#include "tests/common/model/test_models.h"

namespace shoal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const auto kSparse = LossOf("SparseCategoricalCrossentropy");

TrainingGraph Build(const Graph& model, const std::shared_ptr<const Loss>& loss) {
  absl::StatusOr<TrainingGraph> training = BuildTrainingGraph(model, *loss);
  EXPECT_TRUE(training.ok()) << training.status();
  return training.ok() ? *std::move(training) : TrainingGraph();
}

std::vector<std::string> GradientTypes(const TrainingGraph& training) {
  std::vector<std::string> types = NodeTypes(training.graph);
  types.erase(types.begin(), types.begin() + training.forward_nodes);
  return types;
}

// The node that yields `value`.
const Node& Producer(const Graph& graph, ValueId value) {
  const auto node = std::find_if(graph.nodes().begin(), graph.nodes().end(), [&](const Node& n) {
    return std::find(n.outputs.begin(), n.outputs.end(), value) != n.outputs.end();
  });
  EXPECT_NE(node, graph.nodes().end());
  return *node;
}

// What must hold for every training graph: nodes run in order, gradients have their variable's
// shape, and a gradient's node names the node whose gradient it computes.
void CheckInvariants(const TrainingGraph& training) {
  const Graph& graph = training.graph;
  std::vector<bool> known(graph.values().size(), false);
  for (size_t v = 0; v < known.size(); ++v) known[v] = graph.value(v).kind != Value::Kind::kNode;
  for (const Node& node : graph.nodes()) {
    for (const ValueId input : node.inputs) EXPECT_TRUE(known[input]) << graph.value(input).name;
    for (const ValueId output : node.outputs) known[output] = true;
    ASSERT_EQ(&graph.nodes()[node.id], &node);
    if (node.gradient_of < 0) continue;
    ASSERT_LT(node.gradient_of, node.id);
    EXPECT_EQ(graph.nodes()[node.gradient_of].layer, node.layer);
    EXPECT_GE(node.id, training.forward_nodes);
  }
  ASSERT_EQ(training.pushed_values.size(), graph.variables().size());
  for (size_t v = 0; v < graph.variables().size(); ++v) {
    if (training.pushed_values[v] == kNoValue) continue;
    EXPECT_EQ(graph.value(training.pushed_values[v]).shape, graph.variables()[v].shape);
  }
  EXPECT_EQ(graph.value(training.loss_per_example).shape, Shape{kBatch});
}

Json TwoDense(const std::string& last_activation) {
  return SequentialJson({nullptr, 4},
                        {LayerJson("Dense", "a", {{"units", 3}, {"activation", "relu"}}),
                         LayerJson("Dense", "b", {{"units", 2}, {"activation", last_activation}})});
}

TEST(TrainingGraphTest, LastLayersComeFirstAndTheInputNeedsNoGradient) {
  const TrainingGraph training = Build(Parse(TwoDense("linear")).graph, kSparse);
  CheckInvariants(training);
  EXPECT_EQ(training.forward_nodes, 3);
  EXPECT_THAT(GradientTypes(training),
              ElementsAre("Loss", "LossBackward", "BiasBackward", "DenseBackwardWeights",
                          "DenseBackwardData", "ActivationBackward", "BiasBackward",
                          "DenseBackwardWeights"));
  for (const ValueId gradient : training.pushed_values) EXPECT_NE(gradient, kNoValue);
  EXPECT_EQ(training.graph.value(training.target).shape, Shape{kBatch});
}

// Dense, ReLU, Dense. Nodes of a shared layer have one name, so the test compares ids.
TEST(TrainingGraphTest, AGradientNamesTheNodeThatItIsOf) {
  const TrainingGraph training = Build(Parse(TwoDense("linear")).graph, kSparse);
  std::vector<int> of;
  for (const Node& node : training.graph.nodes()) of.push_back(node.gradient_of);
  of.erase(of.begin(), of.end() - 6);
  EXPECT_THAT(of, ElementsAre(2, 2, 2, 1, 0, 0));
}

TEST(TrainingGraphTest, CrossEntropyOfASoftmaxIsTakenFromTheLogits) {
  const KerasModel model = Parse(TwoDense("softmax"));
  const TrainingGraph training = Build(model.graph, kSparse);
  CheckInvariants(training);
  EXPECT_STREQ(Producer(training.graph, training.prediction).op->type(), "Softmax");
  const Node& loss = Producer(training.graph, training.loss_per_example);
  EXPECT_TRUE(static_cast<const LossOp&>(*loss.op).attributes.from_logits);
  EXPECT_STREQ(Producer(training.graph, loss.inputs[0]).op->type(), "Dense");
  EXPECT_THAT(GradientTypes(training), testing::Not(testing::Contains("SoftmaxBackward")));
}

TEST(TrainingGraphTest, OtherLossesTakeTheSoftmaxItself) {
  const KerasModel model = Parse(TwoDense("softmax"));
  for (const auto& loss : {LossOf("MeanSquaredError"),
                           // Logits that are probabilities: odd, but what was asked for.
                           LossOf("CategoricalCrossentropy", R"({"from_logits": true})")}) {
    const TrainingGraph training = Build(model.graph, loss);
    CheckInvariants(training);
    EXPECT_EQ(Producer(training.graph, training.loss_per_example).inputs[0], training.prediction);
    EXPECT_THAT(GradientTypes(training), testing::Contains("SoftmaxBackward"));
    EXPECT_EQ(training.graph.value(training.target).shape, (Shape{kBatch, 2}));
  }
}

TEST(TrainingGraphTest, FrozenLayersHaveNoGradient) {
  Json json = TwoDense("linear");
  json["config"]["layers"][1]["config"]["trainable"] = false;
  const TrainingGraph training = Build(Parse(json).graph, kSparse);
  CheckInvariants(training);
  EXPECT_EQ(training.pushed_values[0], kNoValue);
  EXPECT_EQ(training.pushed_values[1], kNoValue);
  EXPECT_NE(training.pushed_values[2], kNoValue);
  // Nothing before the last layer is trained, so that not even its input's gradient is computed.
  EXPECT_THAT(GradientTypes(training),
              ElementsAre("Loss", "LossBackward", "BiasBackward", "DenseBackwardWeights"));

  json["config"]["layers"][2]["config"]["trainable"] = false;
  EXPECT_THAT(GradientTypes(Build(Parse(json).graph, kSparse)), ElementsAre("Loss"));
}

TEST(TrainingGraphTest, GradientsOfAValueUsedTwiceAreSummed) {
  const KerasModel model = Parse(
      FunctionalJson({CalledJson(LayerJson("InputLayer", "x", {{"batch_shape", {nullptr, 4}}}), {}),
                      CalledJson(LayerJson("Dense", "a", {{"units", 4}}), {"x"}),
                      CalledJson(LayerJson("Dense", "b", {{"units", 4}}), {"a"}),
                      CalledJson(LayerJson("Add", "sum", Json::object()), {"a", "b", "a"})},
                     "x", "sum"));
  const TrainingGraph training = Build(model.graph, LossOf("MeanSquaredError"));
  CheckInvariants(training);
  EXPECT_THAT(GradientTypes(training),
              ElementsAre("Loss", "LossBackward", "BiasBackward", "DenseBackwardWeights",
                          "DenseBackwardData", "Add", "BiasBackward", "DenseBackwardWeights"));
  const auto add = std::find_if(
      training.graph.nodes().begin() + training.forward_nodes, training.graph.nodes().end(),
      [](const Node& node) { return node.op->type() == std::string("Add"); });
  EXPECT_EQ(add->inputs.size(), 3u);  // twice from the sum, once through b
}

TEST(TrainingGraphTest, GradientsOfASharedLayerAreSummedAtItsFirstCall) {
  Json shared = CalledJson(LayerJson("Dense", "shared", {{"units", 4}}), {"x"});
  shared["inbound_nodes"].push_back(Json::array({{"shared", 0, 0, Json::object()}}));
  Json json = FunctionalJson(
      {CalledJson(LayerJson("InputLayer", "x", {{"batch_shape", {nullptr, 4}}}), {}), shared}, "x",
      "shared");
  json["config"]["output_layers"][0][1] = 1;
  const TrainingGraph training = Build(Parse(json).graph, LossOf("MeanSquaredError"));
  CheckInvariants(training);
  EXPECT_EQ(training.graph.variables().size(), 2u);
  for (const ValueId gradient : training.pushed_values) {
    EXPECT_STREQ(Producer(training.graph, gradient).op->type(), "Add");
  }
}

TEST(TrainingGraphTest, ConvolutionsAndPools) {
  const KerasModel model = Parse(SequentialJson(
      {nullptr, 9, 9, 2},
      {LayerJson("Conv2D", "c1", {{"filters", 4}, {"kernel_size", 3}, {"use_bias", false}}),
       LayerJson("MaxPooling2D", "p", {{"pool_size", 2}}),
       LayerJson("Dropout", "drop", {{"rate", 0.5}}),
       LayerJson("Conv2D", "c2", {{"filters", 3}, {"kernel_size", 2}, {"padding", "same"}}),
       LayerJson("GlobalAveragePooling2D", "g", Json::object())}));
  const TrainingGraph training = Build(model.graph, kSparse);
  CheckInvariants(training);
  EXPECT_THAT(GradientTypes(training),
              ElementsAre("Loss", "LossBackward", "GlobalAveragePool2DBackward", "BiasBackward",
                          "Conv2DBackwardWeights", "Conv2DBackwardData", "DropoutBackward",
                          "Pool2DBackward", "Conv2DBackwardWeights"));
}

TEST(TrainingGraphTest, EveryGradientHasTheShapeOfItsValue) {
  const KerasModel model = Parse(SequentialJson(
      {nullptr, 6, 6, 2},
      {LayerJson("Conv2D", "c", {{"filters", 4}, {"kernel_size", 3}}),
       LayerJson("Rescaling", "r", {{"scale", 2.0}, {"offset", 1.0}}),
       LayerJson("AveragePooling2D", "p", {{"pool_size", 2}}),
       LayerJson("Flatten", "f", Json::object()),
       LayerJson("Activation", "t", {{"activation", "tanh"}}),
       LayerJson("Reshape", "s", {{"target_shape", {4, -1}}}),
       LayerJson("Dense", "d", {{"units", 3}}), LayerJson("Softmax", "m", Json::object())}));
  const TrainingGraph training = Build(model.graph, LossOf("MeanSquaredError"));
  CheckInvariants(training);
  for (const ValueId gradient : training.pushed_values) EXPECT_NE(gradient, kNoValue);
  EXPECT_EQ(Producer(training.graph, training.pushed_values[0]).layer, "c");
}

TEST(TrainingGraphTest, PenaltiesAddToTheLossAndToGradients) {
  Json json = TwoDense("linear");
  json["config"]["layers"][1]["config"]["kernel_regularizer"] = "l2";
  const TrainingGraph training = Build(Parse(json).graph, kSparse);
  CheckInvariants(training);
  // At the variable, not at the end: its gradient can leave when it is there.
  EXPECT_THAT(
      GradientTypes(training),
      ElementsAre("Loss", "Unary", "SumTo", "SumTo", "Rescale", "Binary", "LossBackward",
                  "BiasBackward", "DenseBackwardWeights", "DenseBackwardData", "ActivationBackward",
                  "BiasBackward", "DenseBackwardWeights", "Rescale", "Add"));
  EXPECT_EQ(training.loss_nodes_end, training.forward_nodes + 6);
}

TEST(TrainingGraphTest, FrozenVariablesAreNotPenalised) {
  Json json = TwoDense("linear");
  json["config"]["layers"][1]["config"]["kernel_regularizer"] = "l2";
  json["config"]["layers"][1]["config"]["trainable"] = false;
  EXPECT_THAT(GradientTypes(Build(Parse(json).graph, kSparse)),
              ElementsAre("Loss", "LossBackward", "BiasBackward", "DenseBackwardWeights"));
}

TEST(TrainingGraphTest, ASharedLayerIsPenalisedOnce) {
  Json shared =
      CalledJson(LayerJson("Dense", "shared", {{"units", 4}, {"kernel_regularizer", "l1"}}), {"x"});
  shared["inbound_nodes"].push_back(Json::array({{"shared", 0, 0, Json::object()}}));
  Json json = FunctionalJson(
      {CalledJson(LayerJson("InputLayer", "x", {{"batch_shape", {nullptr, 4}}}), {}), shared}, "x",
      "shared");
  json["config"]["output_layers"][0][1] = 1;
  const TrainingGraph training = Build(Parse(json).graph, LossOf("MeanSquaredError"));
  const std::vector<std::string> types = GradientTypes(training);
  EXPECT_EQ(std::count(types.begin(), types.end(), "SumTo"), 2);
  const auto signs = std::count_if(training.graph.nodes().begin(), training.graph.nodes().end(),
                                   [](const Node& n) {
                                     const auto* op = dynamic_cast<const UnaryOp*>(n.op.get());
                                     return op != nullptr && op->kind == UnaryOp::Kind::kSign;
                                   });
  EXPECT_EQ(signs, 1);
}

TEST(TrainingGraphTest, RejectsWhatHasNoLoss) {
  Graph graph;
  const ValueId x = graph.AddInput("x", {kBatch});
  graph.SetOutputs({x, x});
  EXPECT_EQ(BuildTrainingGraph(graph, *kSparse).status().code(), absl::StatusCode::kUnimplemented);
  graph.SetOutputs({x});
  const absl::Status status = BuildTrainingGraph(graph, *kSparse).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("(None,)"));
}

}  // namespace
}  // namespace shoal
