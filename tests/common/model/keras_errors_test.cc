#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/common/model/test_models.h"

namespace shoal {
namespace {

using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr absl::StatusCode kLacking = absl::StatusCode::kUnimplemented;

void ExpectError(const std::string& text, absl::StatusCode code,
                 const std::vector<std::string>& parts) {
  const absl::Status status = ParseKerasModel(text).status();
  EXPECT_EQ(status.code(), code) << status;
  for (const std::string& part : parts) EXPECT_THAT(std::string(status.message()), HasSubstr(part));
}

// A change to a model that is right, at a JSON pointer, and what the message must say of it.
struct Fault {
  const char* pointer;
  Json value;
  absl::StatusCode code;
  std::vector<std::string> parts;
};

void ExpectErrors(const Json& base, const std::vector<Fault>& faults) {
  ASSERT_TRUE(ParseKerasModel(base.dump()).ok()) << ParseKerasModel(base.dump()).status();
  for (const Fault& fault : faults) {
    SCOPED_TRACE(testing::Message() << fault.pointer << " = " << fault.value.dump().substr(0, 200));
    Json json = base;
    json[Json::json_pointer(fault.pointer)] = fault.value;
    ExpectError(json.dump(), fault.code, fault.parts);
  }
}

Json Cnn() {
  return SequentialJson(
      {nullptr, 9, 11, 3},
      {LayerJson("Conv2D", "conv", {{"filters", 4}, {"kernel_size", {3, 3}}}),
       LayerJson("MaxPooling2D", "pool", {{"pool_size", {2, 2}}}),
       LayerJson("Flatten", "flat", Json::object()), LayerJson("Dropout", "drop", {{"rate", 0.5}}),
       LayerJson("Dense", "dense", {{"units", 10}, {"activation", "relu"}})});
}

TEST(KerasErrorsTest, NotAModel) {
  ExpectError("", kInvalid, {"not JSON"});
  ExpectError("{\"class_name\": \"Sequential\",", kInvalid, {"not JSON", "line 1"});
  ExpectError("[]", kInvalid, {"$: needs an object", "[]"});
  ExpectError("{}", kInvalid, {"$.class_name: is missing, needs a string"});
  ExpectError(R"({"class_name": "Sequential"})", kInvalid,
              {"$.config: is missing, needs an object"});
  ExpectError(R"({"class_name": "Sequental", "config": {}})", kLacking,
              {"$.class_name", "did you mean \"Sequential\""});
  ExpectError(R"({"class_name": "Sequential", "config": {"layers": []}})", kInvalid,
              {"$.config.layers", "at least one layer"});
  ExpectError(R"({"class_name": "Functional", "config": {"layers": []}})", kInvalid,
              {"$.config.input_layers"});
}

TEST(KerasErrorsTest, Bombs) {
  ExpectError(std::string(100000, '['), kInvalid, {});
  ExpectError(std::string(100000, '[') + std::string(100000, ']'), kInvalid, {"deep"});
  std::string objects;
  for (int i = 0; i < 5000; ++i) objects += "{\"args\":[";
  ExpectError(objects, kInvalid, {});
}

TEST(KerasErrorsTest, LayersAndModels) {
  ExpectErrors(Cnn(),
               {{"/config/layers/1/class_name",
                 "Conv2d",
                 kLacking,
                 {"$.config.layers[1].class_name", "\"Conv2d\"", "did you mean \"Conv2D\"?",
                  "MaxPooling2D"}},
                {"/config/layers/1/class_name",
                 "LSTM",
                 kLacking,
                 {"\"LSTM\"", "Activation, ActivityRegularization, Add,"}},
                {"/config/layers/1/class_name", 3, kInvalid, {"$.config.layers[1].class_name"}},
                {"/config/layers/1", 3, kInvalid, {"$.config.layers[1]: needs an object", "got 3"}},
                {"/config/layers/1/registered_name", "mine>Conv2D", kLacking, {"mine>Conv2D"}},
                {"/config/layers/1/module", "mine.layers", kLacking, {"$.config.layers[1].module"}},
                {"/config/layers/1/config", nullptr, kInvalid, {"$.config.layers[1].config"}},
                {"/config/layers/1/config/name", "", kInvalid, {"$.config.layers[1].config.name"}},
                {"/config/layers/2/config/name",
                 "conv",
                 kInvalid,
                 {"$.config.layers[2].config.name", "\"conv\""}},
                {"/config/layers/1/config/dtype",
                 "float16",
                 kLacking,
                 {"$.config.layers[1].config.dtype", "float16"}},
                {"/config/layers/2",
                 LayerJson("InputLayer", "again", {{"batch_shape", {nullptr, 3}}}),
                 kInvalid,
                 {"$.config.layers[2]", "only the first layer"}},
                {"/config/layers/2",
                 LayerJson("Subtract", "less", Json::object()),
                 kInvalid,
                 {"$.config.layers[2]", "layer \"less\" (Subtract)", "takes two inputs, got 1"}},
                {"/config/activity", "on", kLacking, {"$.config.activity"}},
                {"/config/layers", "none", kInvalid, {"$.config.layers: needs a list"}}});
}

TEST(KerasErrorsTest, Inputs) {
  ExpectErrors(
      Cnn(),
      {{"/config/layers/0/config/batch_shape",
        nullptr,
        kInvalid,
        {"$.config.layers[0].config.batch_input_shape"}},
       {"/config/layers/0/config/batch_shape", Json::array(), kInvalid, {"[null, 28, 28, 1]"}},
       {"/config/layers/0/config/batch_shape",
        {nullptr, nullptr, 11, 3},
        kLacking,
        {"$.config.layers[0].config.batch_shape[1]", "fixed input shape"}},
       {"/config/layers/0/config/batch_shape",
        {nullptr, 9, -11, 3},
        kInvalid,
        {"$.config.layers[0].config.batch_shape[2]", "-11 is too small"}},
       {"/config/layers/0/config/batch_shape",
        {nullptr, 2000000000, 2000000000, 2000000000},
        kInvalid,
        {"$.config.layers[0].config.batch_shape", "2^40"}},
       {"/config/layers/0/config/batch_shape",
        {nullptr, 20},
        kInvalid,
        {"layer \"conv\" (Conv2D)", "(batch, height, width, channels)", "(None, 20)"}},
       {"/config/layers/0/config/sparse", true, kLacking, {"$.config.layers[0].config.sparse"}},
       {"/config/layers/0/config/ragged", true, kLacking, {"$.config.layers[0].config.ragged"}},
       {"/config/layers/0/config/dtype", "float64", kLacking, {"float64", "float32"}},
       {"/config/layers/0/config/dtype", "string", kLacking, {"string", "float32"}}});
  Json json = Cnn();
  json["config"]["layers"].erase(0);
  ExpectError(json.dump(), kInvalid, {"$.config", "\"conv\"", "build_input_shape", "keras.Input"});
}

TEST(KerasErrorsTest, Options) {
  const std::string conv = "$.config.layers[1].config.";
  const std::string dense = "$.config.layers[5].config.";
  ExpectErrors(
      Cnn(),
      {{"/config/layers/1/config/filters", nullptr, kInvalid, {conv + "filters", "got null"}},
       {"/config/layers/1/config/filters", -4, kInvalid, {conv + "filters: -4 is too small"}},
       {"/config/layers/1/config/filters", 1e300, kInvalid, {conv + "filters", "a whole number"}},
       {"/config/layers/1/config/filters", 18446744073709551615u, kInvalid, {"too large"}},
       {"/config/layers/1/config/padding",
        "valit",
        kInvalid,
        {conv + "padding", "\"valit\"", "did you mean \"valid\"", "same"}},
       {"/config/layers/1/config/padding", 1, kInvalid, {conv + "padding"}},
       {"/config/layers/1/config/strides", {2, 2, 2}, kInvalid, {conv + "strides", "list of two"}},
       {"/config/layers/1/config/strides", {2, 0}, kInvalid, {conv + "strides[1]: 0 is too small"}},
       {"/config/layers/1/config/strides", "2", kInvalid, {conv + "strides"}},
       {"/config/layers/1/config/kernel_size",
        12,
        kInvalid,
        {"$.config.layers[1]: layer \"conv\" (Conv2D)", "(12, 12)", "(None, 9, 11, 3)"}},
       {"/config/layers/1/config/dilation_rate", 1048577, kInvalid, {conv + "dilation_rate"}},
       {"/config/layers/1/config/groups", 2, kInvalid, {conv + "groups", "3 channels"}},
       {"/config/layers/1/config/data_format",
        "channels_first",
        kLacking,
        {conv + "data_format", "channels_last"}},
       {"/config/layers/1/config/use_bias", "yes", kInvalid, {conv + "use_bias"}},
       {"/config/layers/1/config/trainable", 1, kInvalid, {conv + "trainable"}},
       {"/config/layers/1/config/kernel_regularizer",
        {{"class_name", "L3"}},
        kLacking,
        {conv + "kernel_regularizer.class_name", "no regularizer \"L3\"", "did you mean \"L1\""}},
       {"/config/layers/1/config/kernel_regularizer",
        {{"class_name", "L2"}, {"config", {{"l2", -1}}}},
        kInvalid,
        {conv + "kernel_regularizer.config.l2: -1 is negative"}},
       {"/config/layers/1/config/bias_regularizer",
        {{"class_name", "L1"}, {"config", {{"l2", 1}}}},
        kLacking,
        {conv + "bias_regularizer.config.l2"}},
       {"/config/layers/1/config/kernel_regularizer",
        "orthogonal_regularizer",
        kInvalid,
        {conv + "kernel_regularizer", "needs two axes; the variable has shape (3, 3, 3, "}},
       {"/config/layers/1/config/kernel_regularizer",
        {{"class_name", "OrthogonalRegularizer"}, {"config", {{"mode", "row"}}}},
        kInvalid,
        {conv + "kernel_regularizer.config.mode", "did you mean \"rows\""}},
       {"/config/layers/1/config/kernel_constraint",
        "max_norm",
        kLacking,
        {conv + "kernel_constraint"}},
       {"/config/layers/1/config/activity_regularizer",
        "orthogonal_regularizer",
        kLacking,
        {conv + "activity_regularizer", "L1, L2 or L1L2 would be right"}},
       {"/config/layers/0/config/activity_regularizer",
        "l1",
        kLacking,
        {"$.config.layers[0].config.activity_regularizer", "InputLayer"}},
       {"/config/layers/3",
        LayerJson("ActivityRegularization", "activity", {{"l1", -1}}),
        kInvalid,
        {"$.config.layers[3].config.l1: -1 is negative"}},
       {"/config/layers/3",
        LayerJson("ActivityRegularization", "activity", {{"l3", 1}}),
        kLacking,
        {"$.config.layers[3].config.l3"}},
       {"/config/layers/1/config/stride",
        2,
        kLacking,
        {conv + "stride", "did you mean \"strides\""}},
       {"/config/layers/4/config/rate", 1, kInvalid, {"$.config.layers[4].config.rate", "below 1"}},
       {"/config/layers/4/config/rate", -0.5, kInvalid, {"$.config.layers[4].config.rate"}},
       {"/config/layers/4/config/noise_shape",
        {nullptr, 2},
        kInvalid,
        {"$.config.layers[4].config.noise_shape[1]: 2 is too large"}},
       {"/config/layers/4/config/noise_shape",
        {1, nullptr},
        kLacking,
        {"$.config.layers[4].config.noise_shape", "behind the batch", "[1,null]"}},
       {"/config/layers/4/config/noise_shape",
        {nullptr, 1, 1},
        kInvalid,
        {"layer \"drop\" (Dropout)", "3 axes", "(None, 48)"}},
       {"/config/layers/5/config/units", 0, kInvalid, {dense + "units: 0 is too small"}},
       {"/config/layers/5/config/units", 2.5, kInvalid, {dense + "units", "2.5"}},
       {"/config/layers/5/config/activation",
        "rellu",
        kLacking,
        {dense + "activation", "\"rellu\"", "did you mean \"relu\""}},
       {"/config/layers/5/config/activation", 7, kInvalid, {dense + "activation"}},
       {"/config/layers/5/config/activation",
        {{"class_name", "Snake"}, {"config", Json::object()}},
        kLacking,
        {dense + "activation.class_name", "Snake"}},
       {"/config/layers/5/config/activation",
        {{"class_name", "relu"}, {"config", {{"alpha", 2}}}},
        kLacking,
        {dense + "activation.config.alpha"}},
       {"/config/layers/2/config/strides", -1, kInvalid, {"$.config.layers[2].config.strides"}},
       {"/config/layers/3",
        LayerJson("Reshape", "reshape", {{"target_shape", {5, -1}}}),
        kInvalid,
        {"$.config.layers[3].config.target_shape", "layer \"reshape\"", "(None, 3, 4, 4)",
         "[5,-1]"}},
       {"/config/layers/3",
        LayerJson("Reshape", "reshape", {{"target_shape", {-1, -1}}}),
        kInvalid,
        {"only one"}},
       {"/config/layers/3",
        LayerJson("Reshape", "reshape", {{"target_shape", {49}}}),
        kInvalid,
        {"48 elements"}},
       {"/config/layers/3",
        LayerJson("Reshape", "reshape", {{"target_shape", {0, -1}}}),
        kInvalid,
        {}},
       {"/config/layers/3",
        LayerJson("Softmax", "softmax", {{"axis", 1}}),
        kLacking,
        {"$.config.layers[3].config.axis", "last axis"}},
       {"/config/layers/3",
        LayerJson("ReLU", "relu", {{"max_value", -6}}),
        kInvalid,
        {"$.config.layers[3].config.max_value"}},
       {"/config/layers/3",
        LayerJson("Rescaling", "rescaling", {{"scale", {1, 2}}}),
        kInvalid,
        {"$.config.layers[3]: layer \"rescaling\"", "2 values", "(None, 3, 4, 4)"}}});
}

TEST(KerasErrorsTest, MissingOptions) {
  const std::string path = "$.config.layers[1].config.units: is missing, needs a whole number";
  for (const auto& [key, message] :
       {std::pair<std::string, std::string>{"unit",
                                            path + R"(; there is "unit", did you mean "units"?)"},
        {"size", path}}) {
    const absl::Status status =
        ParseKerasModel(
            SequentialJson({nullptr, 6}, {LayerJson("Dense", "dense", {{key, 1}})}).dump())
            .status();
    EXPECT_EQ(status.code(), kInvalid);
    EXPECT_EQ(status.message(), message);
  }
}

// Whatever the shape of its input is: here one that does not suit it either.
TEST(KerasErrorsTest, AllOptionsOfALayerAreHeardAtOnce) {
  const Json conv = {{"filters", -4},     {"kernel_size", {3}},    {"padding", "ful"},
                     {"use_bias", "yes"}, {"activation", "rellu"}, {"kernel_initializer", "he"},
                     {"trainable", 1},    {"dtype", "float64"}};
  const absl::Status status =
      ParseKerasModel(SequentialJson({nullptr, 7}, {LayerJson("Conv2D", "conv", conv)}).dump())
          .status();
  EXPECT_EQ(status.code(), kInvalid);
  const std::string message(status.message());
  for (const auto& [option, value] : conv.items()) {
    EXPECT_THAT(message, HasSubstr("$.config.layers[1].config." + option + ": "));
  }
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 7) << message;
}

TEST(KerasErrorsTest, MergingAndPooling) {
  const auto on = [](const Json& shape, const Json& layer) {
    return SequentialJson(shape, {layer}).dump();
  };
  const std::string layer = "$.config.layers[1]";
  ExpectError(on({nullptr, 4}, LayerJson("GlobalMaxPooling1D", "pool", Json::object())), kInvalid,
              {layer, "\"pool\"", "(batch, steps, channels)", "(None, 4)"});
  ExpectError(on({nullptr, 4, 3}, LayerJson("GlobalMaxPooling2D", "pool", Json::object())),
              kInvalid, {layer, "(batch, height, width, channels)"});
  ExpectError(on({nullptr, 4}, LayerJson("GlobalAveragePooling1D", "pool", Json::object())),
              kInvalid, {layer, "(batch, steps, channels)"});
  ExpectError(on({nullptr, 4}, LayerJson("LeakyReLU", "leaky", {{"negative_slope", "x"}})),
              kInvalid, {layer + ".config.negative_slope"});
  ExpectError(on({nullptr, 4}, LayerJson("ELU", "elu", {{"alpha", "x"}})), kInvalid,
              {layer + ".config.alpha"});
  for (const char* merging : {"Add", "Average", "Maximum", "Minimum", "Multiply", "Subtract"}) {
    const auto merge = [&](const std::vector<std::string>& inputs) {
      return FunctionalJson(
                 {CalledJson(LayerJson("InputLayer", "x", {{"batch_shape", {nullptr, 5}}}), {}),
                  CalledJson(LayerJson("Dense", "narrow", {{"units", 4}}), {"x"}),
                  CalledJson(LayerJson(merging, "merge", Json::object()), inputs)},
                 "x", "merge")
          .dump();
    };
    ExpectError(merge({"x", "narrow"}), kInvalid,
                {"$.config.layers[2]", "layer \"merge\" (" + std::string(merging) + ")",
                 "(None, 5)", "(None, 4)"});
    if (merging == std::string("Subtract")) {
      ExpectError(merge({"x"}), kInvalid, {"takes two inputs, got 1"});
      ExpectError(merge({"x", "x", "x"}), kInvalid, {"takes two inputs, got 3"});
    }
  }
}

TEST(KerasErrorsTest, MarginsAndConcatenation) {
  const std::string at = "/config/layers/1/config/";
  const std::string path = "$.config.layers[1].config.";
  const std::string padding = at + "padding", cropping = at + "cropping", axis = at + "axis";
  ExpectErrors(SequentialJson({nullptr, 5, 6, 2},
                              {LayerJson("ZeroPadding2D", "pad", {{"padding", {{1, 0}, {0, 2}}}})}),
               {{padding.c_str(), -1, kInvalid, {path + "padding: -1 is too small"}},
                {padding.c_str(), {1, 2, 3}, kInvalid, {path + "padding", "list of two"}},
                {padding.c_str(), {{1, 2}, 3.5}, kInvalid, {path + "padding[1]"}},
                {padding.c_str(), {{1, -2}, {0, 0}}, kInvalid, {path + "padding[0][1]"}}});
  ExpectErrors(SequentialJson({nullptr, 5, 6, 2},
                              {LayerJson("Cropping2D", "crop", {{"cropping", {{2, 2}, {0, 5}}}})}),
               {{cropping.c_str(), "1", kInvalid, {path + "cropping"}},
                {cropping.c_str(),
                 {{2, 3}, {0, 0}},
                 kInvalid,
                 {"$.config.layers[1]: layer \"crop\"", "none would be left", "(None, 5, 6, 2)"}}});
  const Json joined =
      FunctionalJson({CalledJson(LayerJson("InputLayer", "x", {{"batch_shape", {nullptr, 5}}}), {}),
                      CalledJson(LayerJson("Concatenate", "join", {{"axis", 1}}), {"x", "x"})},
                     "x", "join");
  ExpectErrors(joined, {{axis.c_str(), 0, kInvalid, {path + "axis: 0 is no axis", "(None, 5)"}},
                        {axis.c_str(), 2, kInvalid, {path + "axis: 2 is no axis"}},
                        {axis.c_str(), -2, kInvalid, {path + "axis: -2 is no axis"}},
                        {axis.c_str(), "last", kInvalid, {path + "axis"}}});
  Json unequal = joined;
  unequal["config"]["layers"][1]["inbound_nodes"][0][1][0] = "image";
  unequal["config"]["layers"].push_back(
      CalledJson(LayerJson("Reshape", "image", {{"target_shape", {5, 1}}}), {"x"}));
  ExpectError(unequal.dump(), kInvalid,
              {"layer \"join\" (Concatenate)", "(None, 5)", "(None, 5, 1)"});
}

TEST(KerasErrorsTest, Sequences) {
  const std::string at = "/config/layers/1/config/";
  const std::string path = "$.config.layers[1].config.";
  const std::string size = at + "kernel_size", padding = at + "padding",
                    shape = "/config/layers/0/config/batch_shape";
  ExpectErrors(SequentialJson({nullptr, 9, 2},
                              {LayerJson("Conv1D", "conv", {{"filters", 3}, {"kernel_size", 4}})}),
               {{size.c_str(), {2, 2}, kInvalid, {path + "kernel_size"}},
                {size.c_str(), 0, kInvalid, {path + "kernel_size: 0 is too small"}},
                {padding.c_str(), "full", kInvalid, {path + "padding", "causal"}},
                {shape.c_str(),
                 {nullptr, 9, 9, 2},
                 kInvalid,
                 {"(batch, steps, channels)", "(None, 9, 9, 2)"}},
                {shape.c_str(), {nullptr, 3, 2}, kInvalid, {"layer \"conv\""}}});
  const std::string pool = at + "pool_size";
  ExpectErrors(SequentialJson({nullptr, 9, 2}, {LayerJson("MaxPooling1D", "pool", Json::object())}),
               {{pool.c_str(), "two", kInvalid, {path + "pool_size"}},
                {padding.c_str(), "causal", kInvalid, {path + "padding", "valid, same"}},
                {shape.c_str(), {nullptr, 9}, kInvalid, {"(batch, steps, channels)"}}});
}

TEST(KerasErrorsTest, Augmentation) {
  const std::string path = "$.config.layers[1].config.";
  const auto expect = [&](const Json& layer, const std::string& option, const Json& value,
                          absl::StatusCode code, const std::vector<std::string>& parts) {
    const std::string pointer = "/config/layers/1/config/" + option;
    ExpectErrors(SequentialJson({nullptr, 6, 6, 3}, {layer}),
                 {{pointer.c_str(), value, code, parts}});
  };
  const Json flip = LayerJson("RandomFlip", "flip", {{"mode", "vertical"}, {"seed", 1}});
  expect(flip, "mode", "sideways", kInvalid, {path + "mode", "horizontal_and_vertical"});
  expect(flip, "seed", 0.5, kInvalid, {path + "seed"});
  expect(flip, "data_format", "channels_first", kLacking, {path + "data_format"});
  expect(flip, "factor", 0.5, kLacking, {path + "factor"});

  const Json move =
      LayerJson("RandomTranslation", "move", {{"height_factor", 1}, {"width_factor", {-1, 0.5}}});
  expect(move, "height_factor", nullptr, kInvalid, {path + "height_factor"});
  expect(move, "height_factor", 1.5, kInvalid, {path + "height_factor: 1.5 must be from -1 to 1"});
  expect(move, "width_factor", {0, -1.5}, kInvalid, {path + "width_factor: [0,-1.5] must be from"});
  expect(move, "width_factor", {0.5}, kInvalid, {path + "width_factor", "two numbers, got [0.5]"});
  expect(move, "width_factor", {0.5, "a"}, kInvalid, {path + "width_factor[1]"});
  expect(move, "fill_mode", "mirror", kInvalid, {path + "fill_mode", "reflect, wrap, constant"});
  expect(move, "interpolation", "bicubic", kLacking, {path + "interpolation"});

  const Json turn = LayerJson("RandomRotation", "turn", {{"factor", {-2, 2}}});
  expect(turn, "factor", {1.5, 2}, kInvalid, {path + "factor: [1.5,2] must be from -1 to 1"});
  const Json zoom =
      LayerJson("RandomZoom", "zoom", {{"height_factor", 1}, {"width_factor", nullptr}});
  expect(zoom, "height_factor", -1, kInvalid, {path + "height_factor: -1 must be above -1"});
  expect(zoom, "width_factor", {-1, 0}, kInvalid, {path + "width_factor", "above -1, up to 1"});

  const Json crop = LayerJson("RandomCrop", "crop", {{"height", 4}, {"width", 3}});
  expect(crop, "height", 0, kInvalid, {path + "height"});
  expect(crop, "width", nullptr, kInvalid, {path + "width"});

  const Json contrast = LayerJson("RandomContrast", "contrast", {{"factor", {0.1, 0.2}}});
  expect(contrast, "factor", -0.1, kInvalid, {path + "factor: -0.1 must be from 0 to 1"});
  expect(contrast, "factor", {-0.5, 0.2}, kInvalid, {path + "factor", "leaves no number"});
  expect(contrast, "value_range", 255, kInvalid, {path + "value_range", "two numbers"});
  const Json brightness = LayerJson("RandomBrightness", "light", {{"factor", 1}});
  expect(brightness, "factor", 1.5, kInvalid, {path + "factor"});
  // As places in an image these were no numbers.
  expect(brightness, "factor", {-1e300, 1}, kInvalid,
         {path + "factor[0]: -1e+300 must be from -1e+09 to 1e+09"});
  expect(turn, "factor", {-1, 1e300}, kInvalid, {path + "factor[1]", "1e+09"});
  expect(contrast, "factor", {0.5, 1e300}, kInvalid, {path + "factor[1]"});
  expect(contrast, "value_range", {0, 1e300}, kInvalid, {path + "value_range[1]"});
  expect(brightness, "value_range", {1}, kInvalid, {path + "value_range"});

  for (const Json& layer : {flip, move, turn, zoom, crop, contrast, brightness}) {
    ExpectError(SequentialJson({nullptr, 6, 6}, {layer}).dump(), kInvalid,
                {"$.config.layers[1]", "(batch, height, width, channels)", "(None, 6, 6)"});
  }
}

TEST(KerasErrorsTest, NormalizationEmbeddingAndResizing) {
  const std::string at = "/config/layers/1/config/";
  const std::string path = "$.config.layers[1].config.";
  const auto expect = [&](const Json& shape, const Json& layer, const std::string& option,
                          const Json& value, absl::StatusCode code,
                          const std::vector<std::string>& parts) {
    const std::string pointer = at + option;
    ExpectErrors(SequentialJson(shape, {layer}), {{pointer.c_str(), value, code, parts}});
  };
  const Json image = {nullptr, 6, 6, 3};
  const Json norm = LayerJson("BatchNormalization", "norm", {{"axis", {3}}});
  expect(image, norm, "momentum", 1.5, kInvalid, {path + "momentum: 1.5 must be from 0 to 1"});
  expect(image, norm, "epsilon", -1, kInvalid, {path + "epsilon: -1 is negative"});
  expect(image, norm, "axis", 1, kLacking, {path + "axis", "last axis only", "(None, 6, 6, 3)"});
  expect(image, norm, "axis", {1, 2}, kInvalid, {path + "axis"});
  expect(image, norm, "synchronized", true, kLacking, {path + "synchronized", "own batch"});
  expect(image, norm, "renorm", true, kLacking, {path + "renorm", "renormalisation"});
  expect(image, norm, "beta_initializer", "onse", kLacking, {path + "beta_initializer"});

  const Json rows = LayerJson("LayerNormalization", "rows", {{"axis", {-1}}});
  expect(image, rows, "axis", 2, kLacking, {path + "axis", "last axis only"});
  expect(image, rows, "epsilon", -0.5, kInvalid, {path + "epsilon: -0.5 is negative"});
  expect(image, rows, "rms_scaling", true, kLacking, {path + "rms_scaling"});

  const Json ids = {nullptr, 4};
  const Json embedding = LayerJson("Embedding", "table", {{"input_dim", 9}, {"output_dim", 2}});
  expect(ids, embedding, "input_dim", 16777217, kLacking, {path + "input_dim", "2^24"});
  expect(ids, embedding, "output_dim", 0, kInvalid, {path + "output_dim"});
  expect(ids, embedding, "mask_zero", true, kLacking, {path + "mask_zero", "no masks"});

  const Json resizing = LayerJson("Resizing", "size", {{"height", 4}, {"width", 5}});
  expect(image, resizing, "height", nullptr, kInvalid, {path + "height"});
  expect(image, resizing, "interpolation", "bicubic", kLacking,
         {path + "interpolation", "\"bicubic\"", "bilinear, nearest"});
  expect(image, resizing, "antialias", true, kLacking, {path + "antialias"});
  expect(image, LayerJson("UpSampling2D", "up", Json::object()), "size", {2, 0}, kInvalid,
         {path + "size[1]"});

  const Json depthwise = LayerJson("DepthwiseConv2D", "deep", {{"kernel_size", 3}});
  expect(image, depthwise, "depth_multiplier", 0, kInvalid, {path + "depth_multiplier"});
  expect(image, depthwise, "groups", 3, kLacking, {path + "groups"});
  expect(image, depthwise, "kernel_size", 7, kInvalid, {"layer \"deep\"", "(None, 6, 6, 3)"});
  const Json separable = LayerJson("SeparableConv2D", "deep", {{"kernel_size", 3}, {"filters", 2}});
  expect(image, separable, "filters", nullptr, kInvalid, {path + "filters"});
  expect(image, separable, "pointwise_initializer", "x", kLacking,
         {path + "pointwise_initializer"});
  const Json transposed = LayerJson("Conv2DTranspose", "up", {{"kernel_size", 3}, {"filters", 2}});
  expect(image, transposed, "output_padding", {1, 1}, kLacking, {path + "output_padding"});
  expect(image, transposed, "strides", {1, 1, 1}, kInvalid, {path + "strides"});

  const Json given = LayerJson("Normalization", "norm",
                               {{"mean", {1, 2, 3}}, {"variance", {1, 4, 9}}, {"axis", {-1}}});
  expect(image, given, "variance", {1, 4}, kInvalid, {path + "variance", "2 values", "mean has 3"});
  expect(image, given, "variance", {1, 4, -9}, kInvalid, {path + "variance", "-9 is negative"});
  expect(image, given, "variance", nullptr, kInvalid, {path + "variance", "a number"});
  expect(image, given, "mean", {1, "x", 3}, kInvalid, {path + "mean[1]"});
  expect(image, given, "invert", true, kLacking, {path + "invert"});
  expect(image, given, "axis", 1, kLacking, {path + "axis", "last axis"});
  const Json prelu = LayerJson("PReLU", "prelu", {{"shared_axes", {1, 2}}});
  expect(image, prelu, "shared_axes", {0}, kInvalid, {path + "shared_axes[0]: 0 is no axis"});
  expect(image, prelu, "shared_axes", 1, kInvalid, {path + "shared_axes: needs a list"});
}

// One Dense on an LSTM, and two more whose own options are wrong.
std::vector<Json> LayersWithFaults() {
  return {
      LayerJson("LSTM", "lstm", {{"units", 4}}),
      LayerJson("Conv2D", "conv", {{"filters", 4}, {"kernel_size", {3, 3}}, {"padding", "ful"}}),
      LayerJson("Flatten", "flat", Json::object()),
      LayerJson("GroupNormalization", "norm", Json::object()),
      LayerJson("Dense", "fine", {{"units", 3}}),
      LayerJson("Dense", "dense", {{"units", 3}, {"activation", "rellu"}})};
}
const char* const kPartsOfFaults[] = {
    ".class_name: Shoal has no layer \"LSTM\"", ".config.padding: \"ful\" is unknown",
    ".class_name: Shoal has no layer \"GroupNormalization\"", ".config.activation: "};

void ExpectALineEach(const absl::Status& status) {
  const std::string message(status.message());
  for (const char* part : kPartsOfFaults) EXPECT_THAT(message, HasSubstr(part));
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 3) << message;
}

TEST(KerasErrorsTest, AllLayersAreHeardAtOnce) {
  const Json sequential = SequentialJson({nullptr, 9, 9, 3}, LayersWithFaults());
  ExpectALineEach(ParseKerasModel(sequential.dump()).status());

  std::vector<Json> called = {
      CalledJson(LayerJson("InputLayer", "x", {{"batch_shape", {nullptr, 9, 9, 3}}}), {})};
  std::string last = "x";
  for (const Json& layer : LayersWithFaults()) {
    called.push_back(CalledJson(layer, {last}));
    last = layer["config"]["name"];
  }
  ExpectALineEach(ParseKerasModel(FunctionalJson(called, "x", last).dump()).status());
}

// Where all layers are known, and one of them, called twice, does not suit its input.
TEST(KerasErrorsTest, WhatFollowsFromAnErrorIsNotOne) {
  const auto dense = [](const std::string& name, const std::string& activation) {
    return LayerJson("Dense", name, {{"units", 3}, {"activation", activation}});
  };
  Json shared = CalledJson(dense("shared", "rellu"), {"x"});
  shared["inbound_nodes"].push_back({{"x", 0, 0, Json::object()}});
  const absl::Status status =
      ParseKerasModel(
          FunctionalJson(
              {CalledJson(LayerJson("InputLayer", "x", {{"batch_shape", {nullptr, 6}}}), {}),
               shared,
               CalledJson(LayerJson("Reshape", "reshape", {{"target_shape", {3, 1, 1}}}),
                          {"shared"}),
               CalledJson(LayerJson("MaxPooling2D", "pool", {{"pool_size", {2, 2}}}), {"reshape"}),
               CalledJson(dense("last", "tan"), {"pool"})},
              "x", "last")
              .dump())
          .status();
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("$.config.layers[1].config.activation: "));
  EXPECT_THAT(message, HasSubstr("\n$.config.layers[4].config.activation: "));
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 1) << message;
}

TEST(KerasErrorsTest, VariablesTooLarge) {
  ExpectError(
      SequentialJson({nullptr, 600}, {LayerJson("Dense", "dense", {{"units", 2147483647}})}).dump(),
      kInvalid,
      {"$.config.layers[1]: layer \"dense\" (Dense)", "kernel", "(600, 2147483647)", "2^40"});
}

TEST(KerasErrorsTest, Initializers) {
  const char* at = "/config/layers/5/config/kernel_initializer";
  const std::string path = "$.config.layers[5].config.kernel_initializer";
  ExpectErrors(
      Cnn(),
      {{at, "glorot_unifrom", kLacking, {path, "did you mean \"glorot_uniform\"", "he_normal"}},
       {at, 3, kInvalid, {path}},
       {at,
        {{"class_name", "GlorotUniform"}, {"config", {{"input_axes", {0}}}}},
        kLacking,
        {path + ".config.input_axes"}},
       {at,
        {{"class_name", "GlorotUniform"}, {"config", {{"seed", "x"}}}},
        kInvalid,
        {path + ".config.seed"}},
       {at, {{"class_name", "GlorotUniform"}, {"config", 3}}, kInvalid, {path + ".config"}},
       {at,
        {{"class_name", "RandomUniform"}, {"config", {{"minval", 1}}}},
        kInvalid,
        {path + ".config.minval"}},
       {at,
        {{"class_name", "RandomNormal"}, {"config", {{"stddev", -1}}}},
        kInvalid,
        {path + ".config.stddev"}},
       {at,
        {{"class_name", "VarianceScaling"}, {"config", {{"scale", 0}}}},
        kInvalid,
        {path + ".config.scale"}},
       {at,
        {{"class_name", "VarianceScaling"}, {"config", {{"mode", "fan"}}}},
        kInvalid,
        {path + ".config.mode", "fan_in"}},
       {"/config/layers/5/config/bias_initializer", "orthogonal", kInvalid, {"two axes", "(10,)"}},
       {"/config/layers/1/config/kernel_initializer", "identity", kInvalid, {"(3, 3, 3, 4)"}}});
  Json json = Cnn();
  json["config"]["layers"][5]["config"]["units"] = 10000000;
  json["config"]["layers"][5]["config"]["kernel_initializer"] = "orthogonal";
  ExpectError(json.dump(), kLacking, {path, "16777216"});
}

TEST(KerasErrorsTest, ActivationsThatDoNotFit) {
  Json json = Cnn();
  json["config"]["layers"][5]["config"]["activation"] = "threshold";
  ExpectError(json.dump(), kLacking, {"$.config.layers[5].config.activation", "a ReLU layer"});
  json["config"]["layers"][5]["config"]["activation"] = "sparsemax";
  ExpectError(json.dump(), kLacking, {"$.config.layers[5].config.activation", "sum to 1"});
  json["config"]["layers"][5]["config"]["activation"] = "glu";
  EXPECT_TRUE(ParseKerasModel(json.dump()).ok());
  json["config"]["layers"][5]["config"]["units"] = 9;
  ExpectError(json.dump(), kInvalid, {"$.config.layers[5]", "halves the last axis", "(None, 9)"});
}

TEST(KerasErrorsTest, FunctionalModels) {
  const Json base =
      FunctionalJson({CalledJson(LayerJson("InputLayer", "x", {{"batch_shape", {nullptr, 4}}}), {}),
                      CalledJson(LayerJson("Dense", "wide", {{"units", 5}}), {"x"}),
                      CalledJson(LayerJson("Dense", "same", {{"units", 4}}), {"x"}),
                      CalledJson(LayerJson("Add", "sum", Json::object()), {"x", "same"})},
                     "x", "sum");
  const std::string node = "$.config.layers[3].inbound_nodes[0]";
  const Json object = Json::object();
  const Json tensor = {{"class_name", "__keras_tensor__"},
                       {"config", {{"keras_history", {"x", 0, 0}}}}};
  ExpectErrors(
      base,
      {{"/config/layers/3/inbound_nodes/0/0/0",
        "sam",
        kInvalid,
        {node + "[0]", "\"sam\"", "did you mean \"same\""}},
       {"/config/layers/3/inbound_nodes/0/0/0",
        "wide",
        kInvalid,
        {"$.config.layers[3]: layer \"sum\" (Add)", "(None, 5)", "(None, 4)"}},
       {"/config/layers/3/inbound_nodes/0/0/1", 1, kInvalid, {node + "[0]", "no call 1"}},
       {"/config/layers/3/inbound_nodes/0/0/1", -1, kInvalid, {node + "[0][1]"}},
       {"/config/layers/3/inbound_nodes/0/0/2", 1, kInvalid, {node + "[0][2]", "one output"}},
       {"/config/layers/3/inbound_nodes/0/0", {"x", 0}, kInvalid, {node + "[0]"}},
       {"/config/layers/3/inbound_nodes/0/0/3",
        {{"training", true}},
        kLacking,
        {node + "[0][3].training"}},
       {"/config/layers/3/inbound_nodes/0",
        {{"args", {tensor, tensor}}, {"kwargs", {{"training", true}, {"axis", 1}}}},
        kLacking,
        {node + ".kwargs.axis"}},
       {"/config/layers/3/inbound_nodes/0",
        {{"args", {tensor, 3}}, {"kwargs", object}},
        kLacking,
        {node + ".args[1]"}},
       {"/config/layers/3/inbound_nodes/0",
        {{"args", Json::array()}},
        kInvalid,
        {"without an input"}},
       {"/config/layers/3/inbound_nodes/0", 5, kInvalid, {node}},
       {"/config/layers/3/inbound_nodes", Json::array(), kInvalid, {"\"sum\" is never called"}},
       {"/config/layers/3/inbound_nodes", "x", kInvalid, {"$.config.layers[3].inbound_nodes"}},
       {"/config/layers/0/inbound_nodes",
        Json::array({Json::array({{"x", 0, 0}})}),
        kInvalid,
        {"$.config.layers[0].inbound_nodes"}},
       {"/config/layers/2/config/name", "wide", kInvalid, {"\"wide\"", "names must differ"}},
       {"/config/input_layers", Json::array(), kInvalid, {"$.config.input_layers"}},
       {"/config/input_layers",
        {"sum", 0, 0},
        kInvalid,
        {"$.config.input_layers", "not an InputLayer"}},
       {"/config/input_layers",
        Json::array({{"x", 0, 0}, {"x", 0, 0}}),
        kInvalid,
        {"listed twice"}},
       {"/config/output_layers",
        {"nothing", 0, 0},
        kInvalid,
        {"$.config.output_layers", "no layer"}},
       {"/config/output_layers", nullptr, kInvalid, {"$.config.output_layers"}},
       {"/config/layers/1",
        CalledJson(LayerJson("InputLayer", "y", {{"batch_shape", {nullptr, 4}}}), {}),
        kInvalid,
        {"\"y\"", "$.config.input_layers"}}});
}

}  // namespace
}  // namespace shoal
