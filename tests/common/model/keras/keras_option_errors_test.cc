// Options, initializers and activations.
#include <algorithm>

#include "tests/common/model/keras/keras_faults.h"

namespace shoal {
namespace {

using ::testing::HasSubstr;

TEST(KerasOptionErrorsTest, AWrongOptionIsNamed) {
  const std::string conv = "$.config.layers[1].config.";
  const std::string dense = "$.config.layers[5].config.";
  ExpectErrors(
      Cnn(),
      {{"/config/layers/1/config/filters", nullptr, kInvalid, {conv + "filters: is null"}},
       {"/config/layers/1/config/filters", -4, kInvalid, {conv + "filters: is -4"}},
       {"/config/layers/1/config/filters", 1e300, kInvalid, {conv + "filters", "an integer"}},
       {"/config/layers/1/config/filters", 18446744073709551615u, kInvalid, {conv + "filters"}},
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
        {conv + "kernel_regularizer.config.l2: is -1"}},
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
        {conv + "kernel_constraint", " of \"Conv2D\"", "kernel_regularizer"}},
       {"/config/layers/1/config/activity_regularizer",
        "orthogonal_regularizer",
        kLacking,
        {conv + "activity_regularizer", "use L1, L2 or L1L2"}},
       {"/config/layers/0/config/activity_regularizer",
        "l1",
        kLacking,
        {"$.config.layers[0].config.activity_regularizer", "InputLayer"}},
       {"/config/layers/3",
        LayerJson("ActivityRegularization", "activity", {{"l1", -1}}),
        kInvalid,
        {"$.config.layers[3].config.l1: is -1"}},
       {"/config/layers/3",
        LayerJson("ActivityRegularization", "activity", {{"l3", 1}}),
        kLacking,
        {"$.config.layers[3].config.l3"}},
       {"/config/layers/1/config/stride",
        2,
        kLacking,
        {conv + "stride", "did you mean \"strides\""}},
       {"/config/layers/4/config/rate",
        1,
        kInvalid,
        {"$.config.layers[4].config.rate", "less than 1"}},
       {"/config/layers/4/config/rate", -0.5, kInvalid, {"$.config.layers[4].config.rate"}},
       {"/config/layers/4/config/noise_shape",
        {nullptr, 2},
        kInvalid,
        {"$.config.layers[4].config.noise_shape[1]: 2 is neither 1, for elements that are dropped "
         "together, nor null, nor 48, the extent of axis 1 of an input of shape (None, 48)"}},
       {"/config/layers/4/config/noise_shape",
        {8, 1},
        kInvalid,
        {"$.config.layers[4].config.noise_shape[0]: 8 is neither 1", "nor null of axis 0"}},
       {"/config/layers/1/config/bias_initializer",
        {{"class_name", "Constant"}, {"config", {{"value", {1, 2, 3, 4}}}}},
        kLacking,
        {conv + "bias_initializer.config.value: Shoal's constants are one number for all elements, "
                "got 4"}},
       {"/config/layers/3",
        LayerJson("Normalization", "normalization", {{"axis", Json::array()}}),
        kLacking,
        {"$.config.layers[3].config.axis: Shoal takes one axis here, got [], which is what Keras "
         "writes of axis=None; use [-1], the last one"}},
       {"/config/layers/3",
        LayerJson("LayerNormalization", "normalization", {{"axis", {1, 2, 3}}}),
        kLacking,
        {"$.config.layers[3].config.axis: Shoal takes one axis here, got [1,2,3]"}},
       {"/config/layers/4/config/noise_shape",
        {1, nullptr},
        kLacking,
        {"$.config.layers[4].config.noise_shape", "behind the batch", "[1,null]"}},
       {"/config/layers/4/config/noise_shape",
        {nullptr, 1, 1},
        kInvalid,
        {"layer \"drop\" (Dropout)", "3 axes", "(None, 48)"}},
       {"/config/layers/5/config/units", 0, kInvalid, {dense + "units: is 0"}},
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

TEST(KerasOptionErrorsTest, MissingOptions) {
  const std::string path =
      "$.config.layers[1].config.units: is missing: an integer, 1 to 2147483647";
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
TEST(KerasOptionErrorsTest, ErrorsOfAllOptionsAreReportedTogether) {
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

TEST(KerasOptionErrorsTest, Initializers) {
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

TEST(KerasOptionErrorsTest, ActivationsThatDoNotFit) {
  Json json = Cnn();
  json["config"]["layers"][5]["config"]["activation"] = "threshold";
  ExpectError(json.dump(), kLacking,
              {"$.config.layers[5].config.activation", "two numbers", "a ReLU layer"});
  json["config"]["layers"][5]["config"]["activation"] = "glu";
  EXPECT_TRUE(ParseKerasModel(json.dump()).ok());
  json["config"]["layers"][5]["config"]["units"] = 9;
  ExpectError(json.dump(), kInvalid, {"$.config.layers[5]", "halves the last axis", "(None, 9)"});
}

}  // namespace
}  // namespace shoal
