// Dtype policies: what each layer computes in, recorded in the graph.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "common/model/training/training_graph.h"
#include "tests/common/loss/loss_of.h"
#include "tests/common/model/test_models.h"

namespace shoal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Json Policy(const std::string& name, const std::string& class_name = "DTypePolicy") {
  return {{"module", "keras"}, {"class_name", class_name}, {"config", {{"name", name}}}};
}

Json DenseOfDtype(const std::string& name, const Json& dtype) {
  return LayerJson("Dense", name, {{"units", 3}, {"activation", "relu"}, {"dtype", dtype}});
}

// By layer; fails where the nodes of one differ.
std::map<std::string, ComputeDtype> Precisions(const Graph& graph) {
  std::map<std::string, ComputeDtype> precisions;
  for (const Node& node : graph.nodes()) {
    const auto [known, first] = precisions.emplace(node.layer, node.compute_dtype);
    EXPECT_TRUE(first || known->second == node.compute_dtype)
        << node.layer << ", " << node.op->type();
  }
  return precisions;
}

Graph ParsedGraph(const Json& json) {
  auto model = ParseKerasModel(json.dump());
  EXPECT_TRUE(model.ok()) << model.status();
  return model->graph;
}

TEST(KerasDtypeTest, EachLayerHasThePrecisionOfItsPolicy) {
  Json inner = SequentialJson({nullptr, 3}, {DenseOfDtype("deep", Policy("mixed_float16"))});
  inner["config"]["name"] = "inner";
  // A nested model's own policy is not that of its layers.
  inner["config"]["dtype"] = Policy("mixed_bfloat16");
  const Json json = SequentialJson(
      {nullptr, 4},
      {DenseOfDtype("first", Policy("mixed_bfloat16")), DenseOfDtype("name", "mixed_float16"),
       DenseOfDtype("keras2", Policy("mixed_bfloat16", "Policy")), inner,
       DenseOfDtype("none", nullptr), DenseOfDtype("last", Policy("float32"))});
  const Graph graph = ParsedGraph(json);
  const std::map<std::string, ComputeDtype> expected = {
      {"first", ComputeDtype::kBfloat16},  {"name", ComputeDtype::kFloat16},
      {"keras2", ComputeDtype::kBfloat16}, {"inner/deep", ComputeDtype::kFloat16},
      {"none", ComputeDtype::kFloat32},    {"last", ComputeDtype::kFloat32}};
  EXPECT_EQ(Precisions(graph), expected);

  // Gradients have that of what they are gradients of; the loss is float32, as in Keras.
  const auto training = BuildTrainingGraph(graph, *LossOf("MeanSquaredError"));
  ASSERT_TRUE(training.ok()) << training.status();
  auto all = expected;
  all["loss"] = ComputeDtype::kFloat32;
  EXPECT_EQ(Precisions(training->graph), all);
}

// Keras makes the input of a Sequential model without InputLayer in what its first layer computes
// in.
TEST(KerasDtypeTest, InputsMayBeOfWhatTheFirstLayerComputesIn) {
  for (const char* dtype : {"float32", "bfloat16", "float16"}) {
    Json json = SequentialJson({nullptr, 4}, {DenseOfDtype("dense", Policy("mixed_bfloat16"))});
    json["config"]["layers"][0]["config"]["dtype"] = dtype;
    EXPECT_EQ(ParsedGraph(json).inputs().size(), 1u) << dtype;
  }
}

TEST(KerasDtypeTest, PoliciesThatChangeVariablesAreRejectedByName) {
  const auto error = [](const Json& dtype) {
    const Json json = SequentialJson({nullptr, 4}, {DenseOfDtype("dense", dtype)});
    const absl::Status status = ParseKerasModel(json.dump()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << dtype;
    return std::string(status.message());
  };
  for (const char* dtype : {"float16", "bfloat16", "float64"}) {
    EXPECT_THAT(error(Policy(dtype)),
                AllOf(HasSubstr("$.config.layers[1].config.dtype.config.name: "),
                      HasSubstr("\"" + std::string(dtype) + "\""), HasSubstr("\"float32\"")));
  }
  EXPECT_THAT(error("float16"), HasSubstr("$.config.layers[1].config.dtype: "));
  Json quantized = Policy("int8_from_mixed_bfloat16", "QuantizedDTypePolicy");
  EXPECT_THAT(error(quantized),
              AllOf(HasSubstr("dtype.class_name: "), HasSubstr("\"QuantizedDTypePolicy\"")));
  // It has no name, and read as float32 once.
  EXPECT_THAT(error({{"class_name", "DTypePolicyMap"}, {"config", Json::object()}}),
              HasSubstr("\"DTypePolicyMap\""));
}

// A model on an input of `dtype` and shape (None, 6, 6, 3).
Json OnInput(const std::string& dtype, const std::vector<Json>& layers) {
  Json json = SequentialJson({nullptr, 6, 6, 3}, layers);
  json["config"]["layers"][0]["config"]["dtype"] = dtype;
  return json;
}

TEST(KerasDtypeTest, AnInputSaysWhichWholeNumbersItTakes) {
  const Json dense = LayerJson("Dense", "dense", {{"units", 3}});
  const std::map<std::string, std::pair<int64_t, int64_t>> expected = {
      {"int8", {-128, 127}},
      {"int16", {-32768, 32767}},
      {"int32", {-(1 << 24), 1 << 24}},
      {"int64", {-(1 << 24), 1 << 24}},
      {"uint8", {0, 255}},
      {"uint16", {0, 65535}},
      {"uint32", {0, 1 << 24}},
      {"uint64", {0, 1 << 24}}};
  for (const auto& [dtype, range] : expected) {
    const Graph graph = ParsedGraph(OnInput(dtype, {dense}));
    const auto& numbers = graph.value(graph.inputs()[0]).whole_numbers;
    ASSERT_TRUE(numbers.has_value()) << dtype;
    EXPECT_EQ(std::pair(numbers->min, numbers->max), range) << dtype;
  }
  const Graph graph = ParsedGraph(OnInput("float32", {dense}));
  EXPECT_FALSE(graph.value(graph.inputs()[0]).whole_numbers.has_value());
  EXPECT_THAT(std::string(ParseKerasModel(OnInput("bool", {dense}).dump()).status().message()),
              AllOf(HasSubstr("$.config.layers[0].config.dtype: "), HasSubstr("\"bool\"")));
}

// Keras rounds what these layers make of integers.
TEST(KerasDtypeTest, LayersThatRoundWholeNumbersAreRejected) {
  const Json resize = LayerJson("Resizing", "resize", {{"height", 3}, {"width", 4}});
  const Json nearest =
      LayerJson("Resizing", "resize", {{"height", 3}, {"width", 4}, {"interpolation", "nearest"}});
  const Json pad = LayerJson("ZeroPadding2D", "pad", Json::object());
  const Json pool = LayerJson("MaxPooling2D", "pool", Json::object());
  const Json largest = LayerJson("GlobalMaxPooling2D", "largest", Json::object());
  const Json relu = LayerJson("ReLU", "relu", Json::object());
  const Json rescale = LayerJson("Rescaling", "rescale", {{"scale", 0.5}});
  const Json normalize = LayerJson("LayerNormalization", "normalize", Json::object());
  for (const std::vector<Json>& layers : std::vector<std::vector<Json>>{
           {rescale, resize}, {nearest}, {pad, pool, rescale, normalize}}) {
    EXPECT_TRUE(ParseKerasModel(OnInput("uint8", layers).dump()).ok());
  }
  for (const std::vector<Json>& layers : std::vector<std::vector<Json>>{
           {resize},
           {pad, pool, resize},
           {nearest, normalize},
           {largest, normalize},
           {LayerJson("RandomBrightness", "bright", {{"factor", 0.1}})},
           {LayerJson("UpSampling2D", "larger", {{"interpolation", "bilinear"}})}}) {
    EXPECT_TRUE(ParseKerasModel(OnInput("float32", layers).dump()).ok());
    const absl::Status status = ParseKerasModel(OnInput("uint8", layers).dump()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(status.message()), HasSubstr("Rescaling"));
  }
  // What Keras computes of int32 is int32 still.
  EXPECT_EQ(ParseKerasModel(OnInput("int32", {relu, normalize}).dump()).status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_TRUE(
      ParseKerasModel(
          OnInput("int32", {LayerJson("ReLU", "relu", {{"max_value", 6}}), normalize}).dump())
          .ok());
}

// Layers that Keras computes in uint8, where it wraps around.
TEST(KerasDtypeTest, LayersThatWouldOverflowAreRejected) {
  const Json rescale = LayerJson("Rescaling", "rescale", Json::object());
  const Json flatten = LayerJson("Flatten", "flatten", Json::object());
  const Json penalty = {{"class_name", "L2"}, {"config", {{"l2", 0.1}}}};
  for (const Json& layer :
       {LayerJson("AveragePooling2D", "x", Json::object()),
        LayerJson("ReLU", "x", {{"negative_slope", 0.3}}), LayerJson("PReLU", "x", Json::object()),
        LayerJson("Softmax", "x", Json::object()),
        LayerJson("Activation", "x", {{"activation", "squareplus"}}),
        LayerJson("ActivityRegularization", "x", {{"l2", 0.1}}),
        LayerJson("Flatten", "x", {{"activity_regularizer", penalty}})}) {
    for (const char* dtype : {"uint8", "int8", "int16", "uint32"}) {
      const absl::Status status = ParseKerasModel(OnInput(dtype, {layer}).dump()).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << layer << dtype;
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr("$.config.layers[1]: layer \"x\" (" +
                            layer["class_name"].get<std::string>() + ")"));
    }
    EXPECT_TRUE(ParseKerasModel(OnInput("uint8", {rescale, layer}).dump()).ok()) << layer;
    EXPECT_TRUE(ParseKerasModel(OnInput("int32", {layer}).dump()).ok()) << layer;
    EXPECT_TRUE(ParseKerasModel(OnInput("float32", {layer}).dump()).ok()) << layer;
  }
  // A penalty on floats, of whatever they are made.
  const Json dense = LayerJson("Dense", "dense", {{"units", 3}, {"activity_regularizer", penalty}});
  EXPECT_TRUE(ParseKerasModel(OnInput("uint8", {flatten, dense}).dump()).ok());
}

// The first two inputs of a layer that merges decide what Keras computes in.
TEST(KerasDtypeTest, MergingOverflowsByTheFirstTwoInputs) {
  const auto status = [](const char* merge, const std::vector<const char*>& dtypes) {
    std::vector<Json> layers;
    std::vector<std::string> names;
    Json inputs = Json::array();
    for (const char* dtype : dtypes) {
      names.push_back("in" + std::to_string(names.size()));
      inputs.push_back({names.back(), 0, 0});
      layers.push_back(CalledJson(
          LayerJson("InputLayer", names.back(), {{"batch_shape", {nullptr, 4}}, {"dtype", dtype}}),
          {}));
    }
    layers.push_back(CalledJson(LayerJson(merge, "merge", Json::object()), names));
    Json json = FunctionalJson(layers, names[0], "merge");
    json["config"]["input_layers"] = inputs;
    return ParseKerasModel(json.dump()).status();
  };
  for (const char* merge : {"Add", "Subtract", "Multiply", "Average"}) {
    const absl::Status integers = status(merge, {"uint8", "uint8"});
    EXPECT_EQ(integers.code(), absl::StatusCode::kUnimplemented) << merge;
    EXPECT_THAT(std::string(integers.message()), HasSubstr("\"merge\" (")) << merge;
    EXPECT_TRUE(status(merge, {"int32", "int32"}).ok()) << merge;
    EXPECT_TRUE(status(merge, {"uint8", "float32"}).ok()) << merge;
    EXPECT_TRUE(status(merge, {"uint8", "int32"}).ok()) << merge;
  }
  EXPECT_FALSE(status("Add", {"uint8", "uint8", "float32"}).ok());
  EXPECT_TRUE(status("Add", {"float32", "uint8", "uint8"}).ok());
  for (const char* merge : {"Maximum", "Minimum", "Concatenate"}) {
    EXPECT_TRUE(status(merge, {"uint8", "uint8"}).ok()) << merge;
  }
}

}  // namespace
}  // namespace shoal
