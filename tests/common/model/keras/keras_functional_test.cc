#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/model/parsed_model.h"
#include "tests/common/model/test_models.h"

namespace shoal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// input -> stem -> body -> add(stem, body) -> top, as Keras 2 writes it, the layers not in order.
constexpr char kKeras2[] = R"({
  "class_name": "Functional", "keras_version": "2.15.0", "backend": "tensorflow",
  "config": {
    "name": "residual", "trainable": true,
    "layers": [
      {"class_name": "InputLayer", "name": "image", "inbound_nodes": [], "config": {
        "name": "image", "batch_input_shape": [null, 5, 5, 3], "dtype": "float32", "sparse": false, "ragged": false}},
      {"class_name": "Dense", "name": "top", "inbound_nodes": [[["average", 0, 0, {}]]], "config": {
        "name": "top", "trainable": true, "dtype": "float32", "units": 2, "activation": "softmax"}},
      {"class_name": "Conv2D", "name": "stem", "inbound_nodes": [[["image", 0, 0, {}]]], "config": {
        "name": "stem", "trainable": true, "dtype": "float32", "filters": 4, "kernel_size": [3, 3], "padding": "same"}},
      {"class_name": "Conv2D", "name": "body", "inbound_nodes": [[["stem", 0, 0, {}]]], "config": {
        "name": "body", "trainable": true, "dtype": "float32", "filters": 4, "kernel_size": [3, 3], "padding": "same"}},
      {"class_name": "Add", "name": "add", "inbound_nodes": [[["stem", 0, 0, {}], ["body", 0, 0, {}]]], "config": {
        "name": "add", "trainable": true, "dtype": "float32"}},
      {"class_name": "GlobalAveragePooling2D", "name": "average", "inbound_nodes": [[["add", 0, 0, {}]]], "config": {
        "name": "average", "trainable": true, "dtype": "float32", "data_format": "channels_last", "keepdims": false}}
    ],
    "input_layers": [["image", 0, 0]],
    "output_layers": [["top", 0, 0]]
  }})";

// The same in Keras 3's form.
Json InKeras3(Json json) {
  json.erase("keras_version");
  json["module"] = "keras.src.models.functional";
  json["registered_name"] = "Functional";
  for (Json& layer : json["config"]["layers"]) {
    layer["module"] = "keras.layers";
    layer["registered_name"] = nullptr;
    layer["config"]["dtype"] = {{"module", "keras"},
                                {"class_name", "DTypePolicy"},
                                {"config", {{"name", "float32"}}},
                                {"registered_name", nullptr}};
    if (layer["class_name"] == "InputLayer") {
      layer["config"]["batch_shape"] = layer["config"]["batch_input_shape"];
      layer["config"].erase("batch_input_shape");
    }
    for (Json& call : layer["inbound_nodes"]) {
      Json tensors = Json::array();
      for (const Json& read : call) {
        tensors.push_back({{"class_name", "__keras_tensor__"},
                           {"config",
                            {{"shape", {nullptr, 1}},
                             {"dtype", "float32"},
                             {"keras_history", {read[0], read[1], read[2]}}}}});
      }
      const bool merge = tensors.size() > 1;
      call = {{"args", merge ? Json::array({tensors}) : tensors}, {"kwargs", {{"mask", nullptr}}}};
    }
  }
  for (const char* key : {"input_layers", "output_layers"}) {
    json["config"][key] = Json(json["config"][key][0]);
  }
  return json;
}

TEST(KerasFunctionalTest, ResidualAddInBothForms) {
  const Json keras2 = Json::parse(kKeras2);
  Json oldest = keras2;
  oldest["class_name"] = "Model";
  for (const Json& json : {keras2, InKeras3(keras2), oldest}) {
    const KerasModel model = Parse(json.dump());
    EXPECT_EQ(model.class_name, "Functional");
    EXPECT_EQ(model.name, "residual");
    EXPECT_THAT(NodeTypes(model.graph),
                ElementsAre("Conv2D", "Conv2D", "Add", "GlobalAveragePool2D", "Dense", "Softmax"));
    EXPECT_THAT(VariableNames(model.graph), ElementsAre("stem/kernel", "stem/bias", "body/kernel",
                                                        "body/bias", "top/kernel", "top/bias"));
    EXPECT_EQ(OutputShape(model), (Shape{kBatch, 2}));
    ASSERT_EQ(model.layers.size(), 6u);
    EXPECT_EQ(model.layers[0].name, "image");
    EXPECT_THAT(model.layers[4].connected_to, ElementsAre("stem[0][0]", "body[0][0]"));
    EXPECT_EQ(model.layers[1].parameters, 10);
  }
}

// Written by Keras 3.15: a convolution called twice, whose variables are shared.
TEST(KerasFunctionalTest, SharedLayersShareVariables) {
  const KerasModel model = Parse(ReadText("common/model/testdata/residual_keras3.json"));
  EXPECT_THAT(VariableNames(model.graph),
              ElementsAre("stem/kernel", "stem/bias", "shared/kernel", "shared/bias",
                          "logits/kernel", "logits/bias"));
  EXPECT_THAT(
      NodeTypes(model.graph),
      ElementsAre("Conv2D", "Activation", "Conv2D", "Activation", "Conv2D", "Activation", "Add",
                  "Activation", "Pool2D", "GlobalAveragePool2D", "Dense", "Softmax"));
  EXPECT_EQ(model.graph.nodes()[2].inputs[1], model.graph.nodes()[4].inputs[1]);
}

TEST(KerasFunctionalTest, SharedLayersMustFitAllTheirInputs) {
  Json shared = CalledJson(LayerJson("Dense", "shared", {{"units", 3}}), {"x"});
  shared["inbound_nodes"].push_back(Json::array({{"shared", 0, 0, Json::object()}}));
  const Json json = FunctionalJson(
      {CalledJson(LayerJson("InputLayer", "x", {{"batch_shape", {nullptr, 4}}}), {}), shared}, "x",
      "shared");
  const absl::Status status = ParseKerasModel(json.dump()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("(3, 3)"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("(4, 3)"));
}

TEST(KerasFunctionalTest, InputsComeInTheOrderOfInputLayers) {
  Json json =
      FunctionalJson({CalledJson(LayerJson("InputLayer", "a", {{"batch_shape", {nullptr, 4}}}), {}),
                      CalledJson(LayerJson("InputLayer", "b", {{"batch_shape", {nullptr, 4}}}), {}),
                      CalledJson(LayerJson("Add", "sum", Json::object()), {"a", "b"})},
                     "b", "sum");
  json["config"]["input_layers"].push_back({"a", 0, 0});
  json["config"]["output_layers"].push_back({"b", 0, 0});
  const KerasModel model = Parse(json.dump());
  ASSERT_EQ(model.graph.inputs().size(), 2u);
  EXPECT_EQ(model.graph.value(model.graph.inputs()[0]).name, "b");
  EXPECT_EQ(model.graph.value(model.graph.inputs()[1]).name, "a");
  EXPECT_EQ(model.graph.outputs().size(), 2u);
}

TEST(KerasFunctionalTest, CyclesAreNamed) {
  Json json =
      FunctionalJson({CalledJson(LayerJson("InputLayer", "x", {{"batch_shape", {nullptr, 4}}}), {}),
                      CalledJson(LayerJson("Add", "one", Json::object()), {"x", "three"}),
                      CalledJson(LayerJson("ReLU", "two", Json::object()), {"one"}),
                      CalledJson(LayerJson("ReLU", "three", Json::object()), {"two"}),
                      CalledJson(LayerJson("ReLU", "after", Json::object()), {"three"})},
                     "x", "after");
  absl::Status status = ParseKerasModel(json.dump()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("\"one\" -> \"two\" -> \"three\" -> \"one\""));

  json["config"]["layers"][2]["inbound_nodes"][0][0][0] = "two";
  status = ParseKerasModel(json.dump()).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"two\" -> \"two\""));
}

}  // namespace
}  // namespace shoal
