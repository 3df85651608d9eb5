#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/model/parsed_model.h"
#include "tests/common/model/test_models.h"

// Models in models. What Keras computes with such is the golden case "nested".

namespace shoal {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

void ExpectRejected(const Json& json, const std::vector<std::string>& parts) {
  const absl::Status status = ParseKerasModel(json.dump()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  for (const std::string& part : parts) EXPECT_THAT(std::string(status.message()), HasSubstr(part));
}

Json Input(const std::string& name, const Json& batch_shape) {
  return CalledJson(LayerJson("InputLayer", name, {{"batch_shape", batch_shape}}), {});
}

Json Dense(const std::string& name, int units) {
  return LayerJson("Dense", name, {{"units", units}});
}

// A model as a layer: with a name, and without what only a file has.
Json Named(Json model, const std::string& name) {
  model["config"]["name"] = name;
  return model;
}

TEST(KerasNestedTest, VariablesAreNamedAfterTheModelsAround) {
  const Json deep = Named(SequentialJson({nullptr, 4}, {Dense("dense", 3)}), "deep");
  const Json inner = Named(SequentialJson({nullptr, 4}, {Dense("dense", 4), deep}), "inner");
  const KerasModel model = Parse(SequentialJson({nullptr, 5}, {Dense("dense", 4), inner}));
  EXPECT_THAT(VariableNames(model.graph),
              ElementsAre("dense/kernel", "dense/bias", "inner/dense/kernel", "inner/dense/bias",
                          "inner/deep/dense/kernel", "inner/deep/dense/bias"));
  EXPECT_EQ(OutputShape(model), (Shape{kBatch, 3}));
  ASSERT_EQ(model.layers.size(), 2u);
  EXPECT_EQ(model.layers[1].name, "inner");
  EXPECT_EQ(model.layers[1].class_name, "Sequential");
  EXPECT_EQ(model.layers[1].output_shape, (Shape{kBatch, 3}));
  EXPECT_EQ(model.layers[1].parameters, 20 + 15);
  // Nodes, too, are told apart by the path.
  EXPECT_EQ(model.graph.nodes()[2].layer, "inner/deep/dense");
}

TEST(KerasNestedTest, SharedModelsShareVariables) {
  const KerasModel model = Parse(Json::parse(ReadText("golden/nested/model.json")));
  EXPECT_THAT(VariableNames(model.graph),
              ElementsAre("features/conv/kernel", "features/conv/bias", "features/deep/conv/kernel",
                          "features/deep/conv/bias", "join/dense/kernel", "join/dense/bias",
                          "join/other/kernel", "join/other/bias", "frozen/dense/kernel",
                          "frozen/dense/bias", "dense/kernel", "dense/bias"));
  const std::vector<std::string> types = NodeTypes(model.graph);
  EXPECT_EQ(std::count(types.begin(), types.end(), "Conv2D"), 4);
  EXPECT_EQ(model.graph.inputs().size(), 2u);
}

// Keras 3 counts the calls of a Functional model from 0 where a layer reads one, and from 1 in
// output_layers; Keras 2 from 1 everywhere.
TEST(KerasNestedTest, CallsAreCountedAsKerasDoes) {
  Json keras3 = Json::parse(ReadText("common/model/testdata/nested_output.json"));
  const KerasModel model = Parse(keras3);
  // The second call of "two" is the output, and reads what "wide" makes of the first.
  EXPECT_EQ(model.graph.nodes().back().layer, "two/q");
  EXPECT_EQ(model.graph.nodes().back().outputs, model.graph.outputs());
  EXPECT_EQ(model.graph.nodes().size(), 6u);  // r, sum, q, wide, sum, q
  keras3["config"]["output_layers"][1] = 3;
  ExpectRejected(keras3, {"$.config.output_layers", "\"two\" has 2 calls, counted from 1"});
  keras3["config"]["output_layers"][1] = 0;
  ExpectRejected(keras3, {"$.config.output_layers", "\"two\" has 2 calls, counted from 1"});

  const Json inner =
      Named(FunctionalJson({Input("i", {nullptr, 4}), CalledJson(Dense("dense", 4), {"i"})}, "i",
                           "dense"),
            "inner");
  Json keras2 = FunctionalJson(
      {Input("x", {nullptr, 4}), CalledJson(inner, {"x"}), CalledJson(Dense("top", 2), {"inner"})},
      "x", "top");
  ExpectRejected(keras2, {"\"inner\" has 1 call", "no call 0"});
  keras2["config"]["layers"][2]["inbound_nodes"][0][0][1] = 1;
  EXPECT_EQ(OutputShape(Parse(keras2)), (Shape{kBatch, 2}));
  // A Sequential model with an InputLayer, in Keras 2 alone.
  keras2["config"]["layers"][1] =
      CalledJson(Named(SequentialJson({nullptr, 4}, {Dense("dense", 4)}), "inner"), {"x"});
  ExpectRejected(keras2, {"no call 1"});
  keras2["keras_version"] = "2.15.0";
  EXPECT_EQ(OutputShape(Parse(keras2)), (Shape{kBatch, 2}));
}

// What is trained, in order of the model's layers. The golden case "fine_tuned" has such a model.
std::vector<std::string> TrainedVariables(const Json& json) {
  const KerasModel model = Parse(json);
  std::vector<std::string> names;
  for (const Variable& variable : model.graph.variables()) {
    if (variable.rule != UpdateRule::kFrozen) names.push_back(variable.name);
  }
  return names;
}

// Freezing a model in Keras sets the flags of all its layers, which are written; any of them can be
// set again.
TEST(KerasNestedTest, LayersAreTrainedWhateverTheFlagsOfNestedModels) {
  Json fixed =
      LayerJson("Dense", "fixed", {{"units", 4}, {"trainable", false}, {"use_bias", false}});
  Json free = LayerJson("Dense", "free", {{"units", 4}, {"trainable", true}, {"use_bias", false}});
  for (const bool trainable : {false, true}) {
    Json sequential = Named(SequentialJson({nullptr, 4}, {fixed, free}), "sequential");
    sequential["config"]["trainable"] = trainable;
    Json functional = Named(FunctionalJson({Input("i", {nullptr, 4}), CalledJson(sequential, {"i"}),
                                            CalledJson(free, {"sequential"})},
                                           "i", "free"),
                            "functional");
    functional["config"]["trainable"] = trainable;
    EXPECT_THAT(TrainedVariables(SequentialJson({nullptr, 4}, {functional})),
                ElementsAre("functional/sequential/free/kernel", "functional/free/kernel"));
  }
}

// Of the outer model Keras keeps the flag where it is Functional and forgets it where it is
// Sequential. Statistics move all the same.
TEST(KerasNestedTest, AnOuterFunctionalModelMayTrainNothing) {
  const Json norm = LayerJson("BatchNormalization", "norm", {{"scale", false}});
  const Json inner = Named(SequentialJson({nullptr, 4}, {Dense("dense", 4), norm}), "inner");
  Json functional =
      FunctionalJson({Input("x", {nullptr, 4}), CalledJson(inner, {"x"})}, "x", "inner");
  functional["config"]["trainable"] = false;
  EXPECT_THAT(TrainedVariables(functional),
              ElementsAre("inner/norm/moving_mean", "inner/norm/moving_variance"));
  Json sequential = SequentialJson({nullptr, 4}, {inner});
  sequential["config"]["trainable"] = false;
  EXPECT_EQ(TrainedVariables(sequential).size(), 5u);
}

// A part that takes images of any size, as keras.applications make it for transfer.
TEST(KerasNestedTest, OpenExtentsAreThoseOfTheCall) {
  const Json inner =
      Named(SequentialJson({nullptr, nullptr, nullptr, 3},
                           {LayerJson("Conv2D", "conv", {{"filters", 4}, {"kernel_size", 3}})}),
            "inner");
  EXPECT_EQ(OutputShape(Parse(SequentialJson({nullptr, 9, 8, 3}, {inner}))),
            (Shape{kBatch, 7, 6, 4}));
  ExpectRejected(
      SequentialJson({nullptr, 9, 8, 4}, {inner}),
      {"$.config.layers[1].config.layers[0]", "(None, None, None, 3)", "(None, 9, 8, 4)"});
}

TEST(KerasNestedTest, ErrorsInside) {
  const Json inner =
      Named(FunctionalJson({Input("i", {nullptr, 4}), CalledJson(Dense("dense", 4), {"i"})}, "i",
                           "dense"),
            "inner");
  const auto around = [](const Json& model) {
    return FunctionalJson({Input("x", {nullptr, 4}), CalledJson(model, {"x"})}, "x", "x");
  };
  Parse(around(inner));
  const std::string path = "$.config.layers[1].config.";

  Json wrong = inner;
  wrong["config"]["layers"][1]["config"]["units"] = 0;
  ExpectRejected(around(wrong), {path + "layers[1].config.units: is 0"});
  wrong = inner;
  wrong["config"]["output_layers"].push_back({"i", 0, 0});
  ExpectRejected(around(wrong), {"layer \"inner\" (Functional) has 2 outputs"});
  wrong = inner;
  wrong["config"]["layers"][1]["inbound_nodes"][0][0][0] = "dense";
  ExpectRejected(around(wrong), {path + "layers: "});
  wrong = FunctionalJson({Input("x", {nullptr, 4}), CalledJson(inner, {"x", "x"})}, "x", "x");
  ExpectRejected(wrong, {"$.config.layers[1]", "1 input", " 2"});
}

// A model of several outputs, and one that takes its inputs by name.
TEST(KerasNestedTest, OutputsAndDictsAreRejectedInTheirWords) {
  const auto rejected = [](const Json& json) {
    const absl::Status status = ParseKerasModel(json.dump()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    return std::string(status.message());
  };
  Json json = Json::parse(ReadText("common/model/testdata/nested_output.json"));
  Json* call = nullptr;
  for (Json& layer : json["config"]["layers"]) {
    if (!layer["inbound_nodes"].empty()) call = &layer["inbound_nodes"][0]["args"][0];
  }
  ASSERT_NE(call, nullptr);
  const Json before = *call;
  Json& tensor = call->is_array() ? (*call)[0] : *call;
  tensor["config"]["keras_history"][2] = 1;
  EXPECT_THAT(rejected(json), AllOf(HasSubstr(".keras_history[2]: "), HasSubstr("number 1 ")));
  *call = {{"a", before}};
  EXPECT_THAT(rejected(json), AllOf(HasSubstr(".args[0]: "), HasSubstr("dict")));
}

TEST(KerasNestedTest, CallsAreCapped) {
  Json model = Named(SequentialJson({nullptr, 4}, {LayerJson("Activation", "last", {})}), "m");
  for (int level = 0; level < 24; ++level) {
    Json twice = FunctionalJson({Input("x", {nullptr, 4}), CalledJson(model, {"x"})}, "x", "m");
    twice["config"]["layers"][1]["inbound_nodes"].push_back({{"m", 0, 0, Json::object()}});
    if (level > 0) twice["config"]["layers"][1]["inbound_nodes"][1][0][1] = 1;
    twice["config"]["output_layers"][0][1] = level > 0 ? 2 : 1;
    model = Named(twice, "m");
  }
  ExpectRejected(model, {"more than 100000 times"});
}

// A name of Keras 2 may have a slash in it.
TEST(KerasNestedTest, NoTwoVariablesHaveOneName) {
  const Json inner = Named(SequentialJson({nullptr, 4}, {Dense("dense", 4)}), "inner");
  ExpectRejected(SequentialJson({nullptr, 4}, {Dense("inner/dense", 4), inner}),
                 {"$.config.layers[2].config.layers[1].config.name", "\"inner/dense/kernel\""});
}

TEST(KerasNestedTest, PathsAreCapped) {
  const Json inner =
      Named(SequentialJson({nullptr, 4}, {Dense(std::string(600, 'a'), 4)}), std::string(600, 'b'));
  ExpectRejected(SequentialJson({nullptr, 4}, {inner}),
                 {"$.config.layers[1].config.layers[1].config.name", "1000 bytes"});
}

}  // namespace
}  // namespace shoal
