#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/model/ops/activation.h"
#include "common/model/ops/binary.h"
#include "common/model/ops/conv2d.h"
#include "common/model/ops/dropout.h"
#include "common/model/ops/pool2d.h"
#include "common/model/ops/rescale.h"
#include "tests/common/model/parsed_model.h"
#include "tests/common/model/test_models.h"

namespace shoal {
namespace {

using ::testing::ElementsAre;

// The model of one layer on images of 9 x 11 x 4.
KerasModel OnImages(const std::string& class_name, const Json& config) {
  return Parse(SequentialJson({nullptr, 9, 11, 4}, {LayerJson(class_name, "layer", config)}));
}

template <typename OpType>
const OpType& OpAt(const KerasModel& model, size_t node) {
  return dynamic_cast<const OpType&>(*model.graph.nodes().at(node).op);
}

TEST(KerasSequentialTest, Conv2DIsReadWithItsOptions) {
  const KerasModel model = OnImages("Conv2D", {{"filters", 6},
                                               {"kernel_size", {3, 5}},
                                               {"strides", 2},
                                               {"dilation_rate", {1, 1}},
                                               {"groups", 2},
                                               {"padding", "same"},
                                               {"activation", "relu"},
                                               {"data_format", "channels_last"}});
  EXPECT_THAT(NodeTypes(model.graph), ElementsAre("Conv2D", "Activation"));
  const Conv2DOp& op = OpAt<Conv2DOp>(model, 0);
  EXPECT_EQ(op.window.size, (std::array<int64_t, 2>{3, 5}));
  EXPECT_EQ(op.window.strides, (std::array<int64_t, 2>{2, 2}));
  EXPECT_EQ(op.window.padding, Padding::kSame);
  EXPECT_EQ(op.groups, 2);
  EXPECT_EQ(model.graph.variables()[0].shape, (Shape{3, 5, 2, 6}));
  EXPECT_EQ(model.graph.variables()[1].shape, (Shape{6}));
  EXPECT_EQ(OutputShape(model), (Shape{kBatch, 5, 6, 6}));
}

TEST(KerasSequentialTest, LayersWithoutBias) {
  const Json config = {
      {"filters", 2}, {"kernel_size", 1}, {"use_bias", false}, {"bias_initializer", "zeros"}};
  EXPECT_THAT(VariableNames(OnImages("Conv2D", config).graph), ElementsAre("layer/kernel"));
  const KerasModel dense =
      OnImages("Dense", {{"units", 2}, {"use_bias", false}, {"bias_initializer", "zeros"}});
  EXPECT_THAT(VariableNames(dense.graph), ElementsAre("layer/kernel"));
  EXPECT_EQ(OutputShape(dense), (Shape{kBatch, 9, 11, 2}));
}

TEST(KerasSequentialTest, PoolingDefaultsAndOptions) {
  const KerasModel model = OnImages("MaxPooling2D", Json::object());
  EXPECT_EQ(OpAt<Pool2DOp>(model, 0).kind, Pool2DOp::Kind::kMax);
  EXPECT_EQ(OpAt<Pool2DOp>(model, 0).window.strides, (std::array<int64_t, 2>{2, 2}));
  EXPECT_EQ(OutputShape(model), (Shape{kBatch, 4, 5, 4}));

  const KerasModel average = OnImages(
      "AveragePooling2D", {{"pool_size", {3, 2}}, {"strides", {1, 4}}, {"padding", "same"}});
  EXPECT_EQ(OpAt<Pool2DOp>(average, 0).kind, Pool2DOp::Kind::kAverage);
  EXPECT_EQ(OutputShape(average), (Shape{kBatch, 9, 3, 4}));

  EXPECT_EQ(OutputShape(OnImages("GlobalAveragePooling2D", Json::object())), (Shape{kBatch, 4}));
  EXPECT_EQ(OutputShape(OnImages("GlobalAveragePooling2D", {{"keepdims", true}})),
            (Shape{kBatch, 1, 1, 4}));
}

TEST(KerasSequentialTest, ShapesOfFlattenAndReshape) {
  EXPECT_EQ(OutputShape(OnImages("Flatten", Json::object())), (Shape{kBatch, 396}));
  EXPECT_EQ(OutputShape(OnImages("Reshape", {{"target_shape", {99, 4}}})), (Shape{kBatch, 99, 4}));
  EXPECT_EQ(OutputShape(OnImages("Reshape", {{"target_shape", {3, -1, 4}}})),
            (Shape{kBatch, 3, 33, 4}));
  EXPECT_EQ(
      OutputShape(Parse(SequentialJson({nullptr}, {LayerJson("Flatten", "f", Json::object())}))),
      (Shape{kBatch, 1}));
}

TEST(KerasSequentialTest, DropoutOfRateZeroHasNoOp) {
  const KerasModel model = Parse(SequentialJson(
      {nullptr, 4}, {LayerJson("Dropout", "one", {{"rate", 0.25}, {"seed", nullptr}}),
                     LayerJson("Dropout", "none", {{"rate", 0}}),
                     LayerJson("Dropout", "two", {{"rate", 0.25}, {"noise_shape", nullptr}})}));
  EXPECT_THAT(NodeTypes(model.graph), ElementsAre("Dropout", "Dropout"));
  EXPECT_EQ(OpAt<DropoutOp>(model, 0).rate, 0.25);
  EXPECT_NE(OpAt<DropoutOp>(model, 0).layer_seed, OpAt<DropoutOp>(model, 1).layer_seed);
  EXPECT_EQ(model.layers.size(), 3u);
}

TEST(KerasSequentialTest, DropoutOfGroups) {
  const auto groups = [](const std::string& class_name, Json config) {
    config["rate"] = 0.25;
    const KerasModel model = OnImages(class_name, config);
    const DropoutGroups& read = OpAt<DropoutOp>(model, 0).groups;
    return std::pair(read.block, read.period);
  };
  EXPECT_EQ(groups("Dropout", Json::object()), std::pair(int64_t{1}, int64_t{1}));
  EXPECT_EQ(groups("SpatialDropout2D", Json::object()), std::pair(int64_t{396}, int64_t{4}));
  // As EfficientNet drops whole examples.
  EXPECT_EQ(groups("Dropout", {{"noise_shape", {nullptr, 1, 1, 1}}}),
            std::pair(int64_t{396}, int64_t{1}));
  EXPECT_EQ(groups("Dropout", {{"noise_shape", {nullptr, nullptr, 1, nullptr}}}),
            std::pair(int64_t{44}, int64_t{4}));
  // The extent says the same as null.
  EXPECT_EQ(groups("Dropout", {{"noise_shape", {nullptr, 9, 1, 4}}}),
            std::pair(int64_t{44}, int64_t{4}));
  const KerasModel sequence = Parse(SequentialJson(
      {nullptr, 7, 3}, {LayerJson("SpatialDropout1D", "layer", {{"rate", 0.5}, {"seed", 3}})}));
  EXPECT_EQ(OpAt<DropoutOp>(sequence, 0).groups.block, 21);
}

// With learnt statistics; golden cases have the numbers of those that are given.
TEST(KerasSequentialTest, NormalizationGoesBothWays) {
  const auto kinds = [](bool invert) {
    const KerasModel model = OnImages("Normalization", {{"invert", invert}});
    EXPECT_THAT(NodeTypes(model.graph), ElementsAre("Unary", "Unary", "Binary", "Binary"));
    return std::pair(OpAt<BinaryOp>(model, 2).kind, OpAt<BinaryOp>(model, 3).kind);
  };
  EXPECT_EQ(kinds(false), std::pair(BinaryOp::Kind::kSubtract, BinaryOp::Kind::kDivide));
  EXPECT_EQ(kinds(true), std::pair(BinaryOp::Kind::kMultiply, BinaryOp::Kind::kAdd));
}

TEST(KerasSequentialTest, RescalingAndSoftmax) {
  const KerasModel model = OnImages("Rescaling", {{"scale", {1, 2, 3, 4}}, {"offset", -1}});
  EXPECT_EQ(OpAt<RescaleOp>(model, 0).scale, (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(OpAt<RescaleOp>(model, 0).offset, (std::vector<double>{-1}));
  for (const Json& axis : {Json(-1), Json(3), Json({3})}) {
    EXPECT_THAT(NodeTypes(OnImages("Softmax", {{"axis", axis}}).graph), ElementsAre("Softmax"));
  }
  EXPECT_THAT(NodeTypes(OnImages("Softmax", Json::object()).graph), ElementsAre("Softmax"));
}

TEST(KerasSequentialTest, ActivationsByName) {
  using Kind = ActivationAttributes::Kind;
  const std::vector<std::pair<std::string, Kind>> names = {{"relu", Kind::kRelu},
                                                           {"tanh", Kind::kTanh},
                                                           {"sigmoid", Kind::kSigmoid},
                                                           {"elu", Kind::kElu},
                                                           {"selu", Kind::kSelu},
                                                           {"softplus", Kind::kSoftplus},
                                                           {"softsign", Kind::kSoftsign},
                                                           {"silu", Kind::kSilu},
                                                           {"swish", Kind::kSilu},
                                                           {"gelu", Kind::kGelu},
                                                           {"relu6", Kind::kRelu},
                                                           {"exponential", Kind::kExponential},
                                                           {"leaky_relu", Kind::kLeakyRelu},
                                                           {"hard_sigmoid", Kind::kHardSigmoid},
                                                           {"sparse_sigmoid", Kind::kHardSigmoid},
                                                           {"mish", Kind::kMish},
                                                           {"celu", Kind::kElu}};
  for (const auto& [name, kind] : names) {
    const KerasModel model = OnImages("Activation", {{"activation", name}});
    EXPECT_EQ(OpAt<ActivationOp>(model, 0).attributes.kind, kind) << name;
    EXPECT_EQ(NodeTypes(OnImages("Dense", {{"units", 2}, {"activation", name}}).graph),
              (std::vector<std::string>{"Dense", "Activation"}));
  }
  const auto attributes = [](const char* name) {
    return OpAt<ActivationOp>(OnImages("Activation", {{"activation", name}}), 0).attributes;
  };
  EXPECT_EQ(attributes("relu").max_value, -1);
  EXPECT_EQ(attributes("relu6").max_value, 6);
  EXPECT_EQ(attributes("elu").negative_slope, 1);
  EXPECT_EQ(attributes("leaky_relu").negative_slope, 0.2);
  EXPECT_EQ(attributes("hard_sigmoid").slope, 1.0 / 6);
  Json keras2 = SequentialJson({nullptr, 4, 4, 1},
                               {LayerJson("Activation", "hard", {{"activation", "hard_sigmoid"}})});
  keras2["keras_version"] = "2.15.0";
  const auto hard = ParseKerasModel(keras2.dump());
  ASSERT_TRUE(hard.ok()) << hard.status();
  EXPECT_EQ(OpAt<ActivationOp>(*hard, 0).attributes.slope, 0.2);
  EXPECT_THAT(NodeTypes(OnImages("Activation", {{"activation", "softmax"}}).graph),
              ElementsAre("Softmax"));
  EXPECT_TRUE(OnImages("Activation", {{"activation", "linear"}}).graph.nodes().empty());
}

TEST(KerasSequentialTest, ActivationsAsObjects) {
  const Json function = {{"class_name", "function"}, {"config", "tanh"}};
  const KerasModel by_function = OnImages("Dense", {{"units", 2}, {"activation", function}});
  EXPECT_EQ(OpAt<ActivationOp>(by_function, 1).attributes.kind, ActivationAttributes::Kind::kTanh);

  const Json bare = {{"class_name", "tanh"}, {"config", Json::object()}};
  const KerasModel by_name = OnImages("Dense", {{"units", 2}, {"activation", bare}});
  EXPECT_EQ(OpAt<ActivationOp>(by_name, 1).attributes.kind, ActivationAttributes::Kind::kTanh);

  const Json layer = {{"module", "keras.layers"},
                      {"class_name", "ReLU"},
                      {"config", {{"name", "re_lu"}, {"max_value", 6.0}, {"dtype", "float32"}}}};
  const KerasModel by_layer = OnImages("Dense", {{"units", 2}, {"activation", layer}});
  EXPECT_EQ(OpAt<ActivationOp>(by_layer, 1).attributes.max_value, 6);
}

TEST(KerasSequentialTest, ReLU) {
  const KerasModel model =
      OnImages("ReLU", {{"max_value", 6.0}, {"negative_slope", 0.5}, {"threshold", 1}});
  const ActivationAttributes& relu = OpAt<ActivationOp>(model, 0).attributes;
  EXPECT_EQ(relu.kind, ActivationAttributes::Kind::kRelu);
  EXPECT_EQ(relu.max_value, 6);
  EXPECT_EQ(relu.negative_slope, 0.5);
  EXPECT_EQ(relu.threshold, 1);
}

Initializer InitializerOf(const Json& json) {
  const KerasModel model = OnImages("Dense", {{"units", 4}, {"kernel_initializer", json}});
  return model.graph.variables().at(0).initializer;
}

TEST(KerasSequentialTest, Initializers) {
  using Kind = Initializer::Kind;
  EXPECT_EQ(InitializerOf("zeros").a, 0);
  EXPECT_EQ(InitializerOf("Ones").a, 1);
  EXPECT_EQ(InitializerOf({{"class_name", "Constant"}, {"config", {{"value", 2.5}}}}).a, 2.5);
  EXPECT_EQ(InitializerOf("random_uniform").b, 0.05);
  EXPECT_EQ(InitializerOf("RandomNormal").kind, Kind::kNormal);
  EXPECT_EQ(InitializerOf({{"class_name", "TruncatedNormal"}, {"config", {{"stddev", 0.1}}}}).b,
            0.1);
  EXPECT_EQ(InitializerOf("orthogonal").kind, Kind::kOrthogonal);
  EXPECT_EQ(InitializerOf("identity").kind, Kind::kIdentity);

  const Initializer glorot = InitializerOf(nullptr);
  EXPECT_EQ(glorot.kind, Kind::kVarianceScaling);
  EXPECT_EQ(glorot.a, 1);
  EXPECT_EQ(glorot.fan_mode, Initializer::FanMode::kFanAvg);
  EXPECT_EQ(glorot.distribution, Initializer::Distribution::kUniform);
  EXPECT_EQ(glorot.seed, -1);

  const Initializer he = InitializerOf({{"class_name", "HeNormal"}, {"config", {{"seed", 5}}}});
  EXPECT_EQ(he.a, 2);
  EXPECT_EQ(he.fan_mode, Initializer::FanMode::kFanIn);
  EXPECT_EQ(he.distribution, Initializer::Distribution::kTruncatedNormal);
  EXPECT_EQ(he.seed, 5);

  const Initializer scaling =
      InitializerOf({{"class_name", "VarianceScaling"},
                     {"config",
                      {{"scale", 3},
                       {"mode", "fan_out"},
                       {"distribution", "untruncated_normal"},
                       {"seed", {{"class_name", "SeedGenerator"}, {"config", {{"seed", 9}}}}}}}});
  EXPECT_EQ(scaling.a, 3);
  EXPECT_EQ(scaling.fan_mode, Initializer::FanMode::kFanOut);
  EXPECT_EQ(scaling.distribution, Initializer::Distribution::kUntruncatedNormal);
  EXPECT_EQ(scaling.seed, 9);
}

// A model without InputLayer: the input's shape stands in one of several places.
TEST(KerasSequentialTest, WithoutInputLayer) {
  Json layer = LayerJson("Dense", "dense", {{"units", 3}});
  const Json shape = {nullptr, 7};
  Json built = {{"class_name", "Sequential"},
                {"config", {{"layers", {layer}}, {"build_input_shape", shape}}}};
  Json first = built;
  first["config"].erase("build_input_shape");
  Json layer_built = first;
  first["config"]["layers"][0]["config"]["batch_input_shape"] = shape;
  layer_built["config"]["layers"][0]["build_config"]["input_shape"] = shape;
  for (const Json& json : {built, first, layer_built}) {
    const KerasModel model = Parse(json);
    EXPECT_EQ(model.graph.variables().at(0).shape, (Shape{7, 3}));
    EXPECT_EQ(model.graph.inputs().size(), 1u);
  }
}

TEST(KerasSequentialTest, ReadsWhatKerasWrote) {
  const auto late = ParseKerasModel(ReadText("common/model/testdata/late.json"));
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_EQ(OutputShape(*late), (Shape{kBatch, 2}));
  const auto sequential = ParseKerasModel(ReadText("common/model/testdata/sequential.json"));
  ASSERT_TRUE(sequential.ok()) << sequential.status();
  EXPECT_THAT(NodeTypes(sequential->graph),
              ElementsAre("Conv2D", "Reshape", "Dropout", "Dense", "Dense", "Activation"));
}

TEST(KerasSequentialTest, FrozenLayers) {
  const Json json =
      SequentialJson({nullptr, 4}, {LayerJson("Dense", "a", {{"units", 3}, {"trainable", false}}),
                                    LayerJson("Dense", "b", {{"units", 3}})});
  const KerasModel partly = Parse(json);
  EXPECT_EQ(partly.graph.variables()[0].rule, UpdateRule::kFrozen);
  EXPECT_EQ(partly.graph.variables()[2].rule, UpdateRule::kOptimizer);
}

// A fixed batch size is no more than a hint.
TEST(KerasSequentialTest, BatchSizeIsOpen) {
  EXPECT_EQ(OutputShape(Parse(SequentialJson({32, 4}, {}))), (Shape{kBatch, 4}));
}

}  // namespace
}  // namespace shoal
