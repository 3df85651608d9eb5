#include "common/json/keras_class.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace shoal {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

json Class(const json& module, const std::string& class_name, const json& registered_name) {
  return {{"module", module},
          {"class_name", class_name},
          {"config", json::object()},
          {"registered_name", registered_name}};
}

json Function(const json& module, const std::string& name) {
  return {{"module", module},
          {"class_name", "function"},
          {"config", name},
          {"registered_name", "function"}};
}

// The error; empty where the object is Keras's own.
std::string Error(const json& object, absl::StatusCode code = absl::StatusCode::kUnimplemented,
                  KerasFunctions functions = KerasFunctions::kAsObjects) {
  JsonErrors errors("");
  if (CheckKerasOwn(object, "$.x", functions, &errors)) {
    EXPECT_TRUE(errors.empty()) << errors.ToStatus();
    return "";
  }
  EXPECT_EQ(errors.ToStatus().code(), code) << errors.ToStatus();
  return std::string(errors.ToStatus().message());
}

// All modules of the public classes of Keras 3.15.1, tf.keras 2.15.1 and tf_keras 2.15.1, and those
// of the one class that is not public and stands in models.
TEST(KerasClassTest, TakesAllModulesThatKerasWritesOfItsOwn) {
  for (const char* module :
       {"keras", "keras.callbacks", "keras.constraints", "keras.dtype_policies",
        "keras.initializers", "keras.layers", "keras.losses", "keras.metrics",
        "keras.mixed_precision", "keras.optimizers", "keras.optimizers.experimental",
        "keras.optimizers.legacy", "keras.optimizers.schedules", "keras.random",
        "keras.regularizers", "tensorflow.keras.layers"}) {
    EXPECT_THAT(Error(Class(module, "Dense", nullptr)), IsEmpty()) << module;
  }
  for (const char* module :
       {"keras.src.models.functional", "keras.src.engine.functional",
        "tf_keras.src.engine.functional", "tensorflow.python.keras.engine.functional"}) {
    EXPECT_THAT(Error(Class(module, "Functional", "Functional")), IsEmpty()) << module;
  }
}

TEST(KerasClassTest, TakesANameAlone) {
  EXPECT_THAT(Error({{"class_name", "Dense"}, {"config", json::object()}}), IsEmpty());
  EXPECT_THAT(Error(Class(nullptr, "Dense", nullptr)), IsEmpty());
  EXPECT_THAT(Error({{"class_name", "function"}, {"config", "tanh"}}), IsEmpty());
  // What is wrong with these, the caller says.
  EXPECT_THAT(Error({{"class_name", 3}}), IsEmpty());
  EXPECT_THAT(Error(json::object()), IsEmpty());
}

TEST(KerasClassTest, RejectsClassesOfOnesOwn) {
  EXPECT_THAT(Error(Class(nullptr, "Dense", "Dense")), HasSubstr("$.x.registered_name: "));
  EXPECT_THAT(Error({{"class_name", "Dense"}, {"registered_name", "Dense"}}),
              HasSubstr("$.x.registered_name: "));
  EXPECT_THAT(Error(Class(nullptr, "Dense", "mine>Dense")), HasSubstr("$.x.registered_name: "));
  EXPECT_THAT(Error(Class("keras.layers", "Dense", "mine>Dense")),
              HasSubstr("$.x.registered_name: "));
  EXPECT_THAT(Error(Class("keras.layers", "Dense", "Other")), HasSubstr("$.x.registered_name: "));
  for (const char* module :
       {"__main__", "mine", "kerasmine.layers", "keras_hub.layers", "builtins", ""}) {
    EXPECT_THAT(Error(Class(module, "Dense", "Dense")), HasSubstr("$.x.module: ")) << module;
  }
}

TEST(KerasClassTest, AFunctionIsKerasOwnWhereKerasWritesItsOwnSo) {
  constexpr auto kLacking = absl::StatusCode::kUnimplemented;
  EXPECT_THAT(Error(Function("builtins", "huber")), IsEmpty());
  EXPECT_THAT(Error(Function("builtins", "huber"), kLacking, KerasFunctions::kByName),
              HasSubstr("$.x.config: is \"huber\""));
  EXPECT_THAT(Error(Function("builtins", "mine>huber")), HasSubstr("$.x.config: "));
  EXPECT_THAT(Error(Function("mine.losses", "huber")), HasSubstr("$.x.module: "));
  EXPECT_THAT(Error(Function(nullptr, "huber")), HasSubstr("$.x.registered_name: "));
  EXPECT_THAT(Error(Function("keras.losses", "huber")), IsEmpty());
}

TEST(KerasClassTest, FieldsOfAWrongTypeAreInvalid) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(Error(Class(3, "Dense", nullptr), kInvalid), HasSubstr("$.x.module: is 3"));
  EXPECT_THAT(Error(Class("keras", "Dense", json::array()), kInvalid),
              HasSubstr("$.x.registered_name: is []"));
}

}  // namespace
}  // namespace shoal
