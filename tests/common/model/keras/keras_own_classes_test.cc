// Classes and functions of the user's own with the names of Keras's: what Keras 3.15.1 and tf.keras
// 2.15.1 write of them, from models that were made and saved.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/model/keras/keras_faults.h"

namespace shoal {
namespace {

// What Keras writes of a class that stands in the file that was run.
Json OfMain(Json object) {
  object["module"] = nullptr;
  object["registered_name"] = object["class_name"];
  return object;
}

Json Object(const std::string& class_name, Json config = Json::object()) {
  return {{"class_name", class_name}, {"config", std::move(config)}};
}

// What Keras 3 writes of any function, and tf.keras 2 of those that it does not know.
Json Function(const std::string& name) {
  return {{"module", "builtins"},
          {"class_name", "function"},
          {"config", name},
          {"registered_name", "function"}};
}

Json LayerNormModel() {
  return SequentialJson({nullptr, 4}, {LayerJson("Dense", "dense", {{"units", 3}}),
                                       LayerJson("LayerNormalization", "norm", Json::object()),
                                       LayerJson("ReLU", "relu", Json::object())});
}

TEST(KerasOwnClassesTest, ALayerOfOnesOwnIsRejected) {
  const Json model = LayerNormModel();
  for (size_t layer = 1; layer <= 3; ++layer) {
    Json own = OfMain(model["config"]["layers"][layer]);
    const std::string at = "/config/layers/" + std::to_string(layer);
    const std::string path = "$.config.layers[" + std::to_string(layer) + "]";
    const std::string name = own["class_name"];
    ExpectErrors(model, {{at.c_str(), own, kLacking, {path, "\"" + name + "\""}}});
    own["module"] = "mine.layers";
    ExpectErrors(model, {{at.c_str(), own, kLacking, {path + ".module", "\"mine.layers\""}}});
    own["module"] = nullptr;
    own["registered_name"] = "mine>" + name;
    ExpectErrors(model, {{at.c_str(), own, kLacking, {path + ".registered_name", "mine>" + name}}});
    own["registered_name"] = ">" + name;  // registered with the package ""
    ExpectErrors(model, {{at.c_str(), own, kLacking, {path + ".registered_name", ">" + name}}});
  }
}

TEST(KerasOwnClassesTest, AModelOfOnesOwnIsRejected) {
  for (const char* name : {"Sequential", "Functional", "Model"}) {
    SCOPED_TRACE(name);
    Json model = LayerNormModel();
    if (std::string(name) != "Sequential") {
      model = FunctionalJson(
          {CalledJson(LayerJson("InputLayer", "in", {{"batch_shape", {nullptr, 4}}}), {}),
           CalledJson(LayerJson("Dense", "out", {{"units", 3}}), {"in"})},
          "in", "out");
    }
    model["class_name"] = name;
    ASSERT_TRUE(ParseKerasModel(model.dump()).ok());
    ExpectError(OfMain(model).dump(), kLacking, {"$.registered_name", name});
    Json outer = SequentialJson({nullptr, 4}, {model});
    ASSERT_TRUE(ParseKerasModel(outer.dump()).ok());
    outer["config"]["layers"][1] = OfMain(model);
    ExpectError(outer.dump(), kLacking, {"$.config.layers[1].registered_name", name});
  }
}

TEST(KerasOwnClassesTest, APartOfALayerOfOnesOwnIsRejected) {
  const std::string path = "$.config.layers[1].config.";
  const Json own_seed = OfMain(Object("SeedGenerator", {{"seed", 3}}));
  ExpectErrors(LayerNormModel(),
               {{"/config/layers/1/config/kernel_initializer",
                 OfMain(Object("HeNormal")),
                 kLacking,
                 {path + "kernel_initializer.registered_name", "\"HeNormal\""}},
                {"/config/layers/1/config/kernel_initializer",
                 Object("HeNormal", {{"seed", own_seed}}),
                 kLacking,
                 {path + "kernel_initializer.config.seed.registered_name", "\"SeedGenerator\""}},
                {"/config/layers/1/config/kernel_regularizer",
                 OfMain(Object("L2", {{"l2", 0.1}})),
                 kLacking,
                 {path + "kernel_regularizer.registered_name", "\"L2\""}},
                {"/config/layers/1/config/activity_regularizer",
                 OfMain(Object("L1")),
                 kLacking,
                 {path + "activity_regularizer.registered_name", "\"L1\""}},
                {"/config/layers/1/config/activation",
                 OfMain(Object("ReLU")),
                 kLacking,
                 {path + "activation.registered_name", "\"ReLU\""}},
                {"/config/layers/1/config/activation",
                 {{"class_name", "ReLU"}, {"config", "relu"}},
                 kInvalid,
                 {path + "activation.config"}},
                {"/config/layers/1/config/dtype",
                 OfMain(Object("DTypePolicy", {{"name", "float32"}})),
                 kLacking,
                 {path + "dtype.registered_name", "\"DTypePolicy\""}}});
}

// Keras writes the names of its own activations alone.
TEST(KerasOwnClassesTest, AFunctionOfOnesOwnIsRejected) {
  for (const std::string name : {"swish", "hard_swish", "celu", "mine>tanh"}) {
    ExpectErrors(LayerNormModel(),
                 {{"/config/layers/1/config/activation",
                   Function(name),
                   kLacking,
                   {"$.config.layers[1].config.activation", "\"" + name + "\""}}});
  }
}

// The name alone stands in older files, and in those that people write.
TEST(KerasOwnClassesTest, ClassesOfKerasAreRead) {
  const Json model = LayerNormModel();
  for (const Json& module : {Json("keras.layers"), Json("tensorflow.python.keras.layers")}) {
    Json of_keras = model;
    for (Json& layer : of_keras["config"]["layers"]) {
      layer["module"] = module;
      layer["registered_name"] = nullptr;
    }
    EXPECT_TRUE(ParseKerasModel(of_keras.dump()).ok()) << ParseKerasModel(of_keras.dump()).status();
  }
  for (const char* module : {"keras.src.models.functional", "keras.src.engine.functional",
                             "tf_keras.src.engine.functional", "keras.engine.functional"}) {
    Json inner = FunctionalJson(
        {CalledJson(LayerJson("InputLayer", "in", {{"batch_shape", {nullptr, 4}}}), {}),
         CalledJson(LayerJson("Dense", "out", {{"units", 3}}), {"in"})},
        "in", "out");
    inner["module"] = module;
    inner["registered_name"] = "Functional";
    const Json outer = SequentialJson({nullptr, 4}, {inner});
    EXPECT_TRUE(ParseKerasModel(outer.dump()).ok()) << ParseKerasModel(outer.dump()).status();
  }
  Json by_name = model;
  by_name["config"]["layers"][1]["module"] = nullptr;
  by_name["config"]["layers"][1]["registered_name"] = nullptr;
  by_name["config"]["layers"][1]["config"]["activation"] = {{"class_name", "function"},
                                                            {"config", "tanh"}};
  EXPECT_TRUE(ParseKerasModel(by_name.dump()).ok()) << ParseKerasModel(by_name.dump()).status();
}

}  // namespace
}  // namespace shoal
