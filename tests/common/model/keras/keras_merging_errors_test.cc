// Layers that merge, pool, pad and crop, and those of sequences.
#include "tests/common/model/keras/keras_faults.h"

namespace shoal {
namespace {

TEST(KerasMergingErrorsTest, MergingAndPooling) {
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
      ExpectError(merge({"x"}), kInvalid, {"got 1"});
      ExpectError(merge({"x", "x", "x"}), kInvalid, {"got 3"});
    }
  }
}

// What keras.ops makes of tensors is written as a layer is, some of it under a layer's name.
TEST(KerasMergingErrorsTest, Operations) {
  const auto model = [](const std::string& class_name, const Json& config,
                        const std::vector<std::string>& inputs) {
    Json operation = CalledJson(LayerJson(class_name, "it", config), inputs);
    operation["module"] = "keras.src.ops.numpy";
    return FunctionalJson(
               {CalledJson(LayerJson("InputLayer", "x", {{"batch_shape", {nullptr, 5, 3}}}), {}),
                CalledJson(LayerJson("GlobalAveragePooling1D", "flat", Json::object()), {"x"}),
                operation},
               "x", "it")
        .dump();
  };
  const std::string path = "$.config.layers[2]";
  for (const char* merging : {"Add", "Maximum", "Minimum", "Multiply", "Subtract"}) {
    const auto good = ParseKerasModel(model(merging, Json::object(), {"x", "x"}));
    EXPECT_TRUE(good.ok()) << good.status();
    // The layer would lay the batches alongside; the operation lays that of "flat" along the steps.
    ExpectError(model(merging, Json::object(), {"x", "flat"}), kLacking,
                {path, "operation \"it\" (" + std::string(merging) + ")", "(None, 5, 3)",
                 "(None, 3)", "keras.layers." + std::string(merging)});
  }
  EXPECT_TRUE(ParseKerasModel(model("Concatenate", {{"axis", 1}}, {"x", "x"})).ok());
  EXPECT_TRUE(ParseKerasModel(model("Softmax", {{"axis", -1}}, {"x"})).ok());
  ExpectError(model("Softmax", {{"axis", nullptr}}, {"x"}), kLacking,
              {path + ".config.axis", "-1 ", "null"});
  // The mean of one tensor; the layer's is over several.
  ExpectError(model("Average", {{"axis", nullptr}}, {"x"}), kLacking,
              {path + ".class_name", "no operation \"Average\" of keras.src.ops.numpy"});
  ExpectError(model("Relu", Json::object(), {"x"}), kLacking, {"no operation \"Relu\""});
}

TEST(KerasMergingErrorsTest, MarginsAndConcatenation) {
  const std::string at = "/config/layers/1/config/";
  const std::string path = "$.config.layers[1].config.";
  const std::string padding = at + "padding", cropping = at + "cropping", axis = at + "axis";
  ExpectErrors(SequentialJson({nullptr, 5, 6, 2},
                              {LayerJson("ZeroPadding2D", "pad", {{"padding", {{1, 0}, {0, 2}}}})}),
               {{padding.c_str(), -1, kInvalid, {path + "padding: -1 "}},
                {padding.c_str(), {1, 2, 3}, kInvalid, {path + "padding"}},
                {padding.c_str(), {{1, 2}, 3.5}, kInvalid, {path + "padding[1]"}},
                {padding.c_str(), {{1, -2}, {0, 0}}, kInvalid, {path + "padding[0][1]"}}});
  ExpectErrors(SequentialJson({nullptr, 5, 6, 2},
                              {LayerJson("Cropping2D", "crop", {{"cropping", {{2, 2}, {0, 5}}}})}),
               {{cropping.c_str(), "1", kInvalid, {path + "cropping"}},
                {cropping.c_str(),
                 {{2, 3}, {0, 0}},
                 kInvalid,
                 {"$.config.layers[1]: layer \"crop\"", "(None, 5, 6, 2)"}}});
  const Json joined =
      FunctionalJson({CalledJson(LayerJson("InputLayer", "x", {{"batch_shape", {nullptr, 5}}}), {}),
                      CalledJson(LayerJson("Concatenate", "join", {{"axis", 1}}), {"x", "x"})},
                     "x", "join");
  ExpectErrors(joined, {{axis.c_str(), 0, kInvalid, {path + "axis: 0 ", "(None, 5)"}},
                        {axis.c_str(), 2, kInvalid, {path + "axis: 2 "}},
                        {axis.c_str(), -2, kInvalid, {path + "axis: -2 "}},
                        {axis.c_str(), "last", kInvalid, {path + "axis"}}});
  Json unequal = joined;
  unequal["config"]["layers"][1]["inbound_nodes"][0][1][0] = "image";
  unequal["config"]["layers"].push_back(
      CalledJson(LayerJson("Reshape", "image", {{"target_shape", {5, 1}}}), {"x"}));
  ExpectError(unequal.dump(), kInvalid,
              {"layer \"join\" (Concatenate)", "(None, 5)", "(None, 5, 1)"});
}

TEST(KerasMergingErrorsTest, Sequences) {
  const std::string at = "/config/layers/1/config/";
  const std::string path = "$.config.layers[1].config.";
  const std::string size = at + "kernel_size", padding = at + "padding",
                    shape = "/config/layers/0/config/batch_shape";
  ExpectErrors(SequentialJson({nullptr, 9, 2},
                              {LayerJson("Conv1D", "conv", {{"filters", 3}, {"kernel_size", 4}})}),
               {{size.c_str(), {2, 2}, kInvalid, {path + "kernel_size"}},
                {size.c_str(), 0, kInvalid, {path + "kernel_size: 0 "}},
                {padding.c_str(), "full", kInvalid, {path + "padding", "causal"}},
                {shape.c_str(),
                 {nullptr, 9, 9, 2},
                 kInvalid,
                 {"(batch, steps, channels)", "(None, 9, 9, 2)"}},
                {shape.c_str(), {nullptr, 3, 2}, kInvalid, {"layer \"conv\""}}});
  const std::string pool = at + "pool_size";
  ExpectErrors(SequentialJson({nullptr, 9, 2}, {LayerJson("MaxPooling1D", "pool", Json::object())}),
               {{pool.c_str(), "two", kInvalid, {path + "pool_size"}},
                {padding.c_str(), "causal", kInvalid, {path + "padding", "\"valid\" or \"same\""}},
                {shape.c_str(), {nullptr, 9}, kInvalid, {"(batch, steps, channels)"}}});
}

}  // namespace
}  // namespace shoal
