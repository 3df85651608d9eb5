#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/loss/keras_loss.h"
#include "common/loss/loss_table.h"
#include "tests/common/json/documented_rows.h"

namespace shoal {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

std::string Config(const std::string& text) {
  const auto loss = MakeLoss(text, "$.loss");
  EXPECT_TRUE(loss.ok()) << loss.status();
  return loss.ok() ? (*loss)->config() : "";
}

std::string Error(const std::string& text, absl::StatusCode code) {
  const auto loss = MakeLoss(text, "$.loss");
  EXPECT_EQ(loss.status().code(), code) << text << ": " << loss.status();
  return std::string(loss.status().message());
}

TEST(LossConfigTest, ReadsAllNamesThatKerasTakes) {
  for (const char* name : {"\"mse\"", "\"MSE\"", "\"mean_squared_error\"", "\"MeanSquaredError\"",
                           "{\"class_name\": \"MeanSquaredError\"}"}) {
    EXPECT_EQ(Config(name), R"({"class_name":"MeanSquaredError","config":{}})");
  }
  EXPECT_THAT(Config("\"kl_divergence\""), HasSubstr("KLDivergence"));
  EXPECT_THAT(Config("\"kld\""), HasSubstr("KLDivergence"));
  EXPECT_THAT(Config("\"mape\""), HasSubstr("MeanAbsolutePercentageError"));
  EXPECT_THAT(Config("\"bce\""), HasSubstr("BinaryCrossentropy"));
  Error("\"\"", absl::StatusCode::kUnimplemented);
  Error("\"_\"", absl::StatusCode::kUnimplemented);
}

TEST(LossConfigTest, ReadsWhatKeras3Writes) {
  EXPECT_EQ(Config(R"({"module": "keras.losses", "class_name": "CategoricalCrossentropy", "config":
      {"name": "categorical_crossentropy", "reduction": "sum_over_batch_size", "from_logits": true,
       "label_smoothing": 0.1, "axis": -1}, "registered_name": null})"),
            R"({"class_name":"CategoricalCrossentropy","config":{"from_logits":true,)"
            R"("label_smoothing":0.1}})");
}

// What keras.losses.serialize() gives of a function.
TEST(LossConfigTest, ReadsAFunctionOfKerasAsItsPlainName) {
  const auto function = [](const std::string& config) {
    return R"({"module": "builtins", "class_name": "function", "config": )" + config +
           R"(, "registered_name": "function"})";
  };
  EXPECT_EQ(Config(function("\"mean_squared_error\"")), Config("\"mean_squared_error\""));
  EXPECT_EQ(Config(function("\"huber\"")), Config("\"Huber\""));
  EXPECT_THAT(Error(function("\"mean_sqared_error\""), absl::StatusCode::kUnimplemented),
              AllOf(HasSubstr("$.loss.config: is \"mean_sqared_error\""),
                    HasSubstr("\"MeanSquaredError\"")));
  for (const char* config : {"{}", "null", "3"}) {
    EXPECT_THAT(Error(function(config), absl::StatusCode::kInvalidArgument),
                HasSubstr("$.loss.config: is "));
  }
  EXPECT_EQ(Error(R"({"class_name": "function"})", absl::StatusCode::kInvalidArgument),
            "$.loss.config: is missing: the name of the function");
}

TEST(LossConfigTest, ALossOfOnesOwnIsRejected) {
  const auto error = [](const std::string& identity) {
    return Error(R"({"class_name": "Huber", "config": {"name": "huber"}, )" + identity + "}",
                 absl::StatusCode::kUnimplemented);
  };
  EXPECT_THAT(error(R"("module": null, "registered_name": "Huber")"),
              AllOf(HasSubstr("$.loss.registered_name"), HasSubstr("\"Huber\"")));
  EXPECT_THAT(error(R"("registered_name": "Huber")"), HasSubstr("$.loss.registered_name"));
  EXPECT_THAT(error(R"("module": null, "registered_name": "mine>Huber")"),
              HasSubstr("$.loss.registered_name"));
  EXPECT_THAT(error(R"("module": "mine.losses", "registered_name": "Huber")"),
              AllOf(HasSubstr("$.loss.module"), HasSubstr("\"mine.losses\"")));
  EXPECT_THAT(error(R"("module": "builtins", "registered_name": null)"),
              HasSubstr("$.loss.module"));
  EXPECT_THAT(Error(R"({"class_name": "Huber", "module": 3})", absl::StatusCode::kInvalidArgument),
              HasSubstr("$.loss.module"));
  EXPECT_THAT(Error(R"({"module": "builtins", "class_name": "function", "config": "mine>huber",
                        "registered_name": "function"})",
                    absl::StatusCode::kUnimplemented),
              AllOf(HasSubstr("$.loss.config"), HasSubstr("\"mine>huber\"")));
}

TEST(LossConfigTest, AWrappedFunctionOfOnesOwnIsRejected) {
  for (const char* fn : {R"("mine")", R"({"class_name": "function", "config": "mine"})", "3"}) {
    const std::string error =
        Error(std::string(R"({"class_name": "MeanSquaredError", "config": {"fn": )") + fn + "}}",
              absl::StatusCode::kUnimplemented);
    EXPECT_THAT(error, HasSubstr("$.loss.config.fn: is "));
  }
  for (const char* fn : {"null", R"("mean_squared_error")",
                         R"({"class_name": "function", "config": "mean_squared_error"})"}) {
    EXPECT_EQ(
        Config(std::string(R"({"class_name": "MeanSquaredError", "config": {"fn": )") + fn + "}}"),
        Config("\"mse\""));
  }
}

TEST(LossConfigTest, ReadsWhatKeras2Writes) {
  EXPECT_EQ(
      Config(R"({"class_name": "SparseCategoricalCrossentropy", "config": {"reduction": "auto",
      "name": "sparse_categorical_crossentropy", "from_logits": true, "ignore_class": null,
      "fn": "sparse_categorical_crossentropy"}})"),
      R"({"class_name":"SparseCategoricalCrossentropy","config":{"from_logits":true}})");
}

TEST(LossConfigTest, KnowsWhetherItTakesLogits) {
  for (const char* name :
       {"BinaryCrossentropy", "BinaryFocalCrossentropy", "CategoricalCrossentropy",
        "CategoricalFocalCrossentropy", "SparseCategoricalCrossentropy"}) {
    const nlohmann::json logits = {{"class_name", name}, {"config", {{"from_logits", true}}}};
    EXPECT_TRUE((*MakeLoss(logits.dump()))->from_logits()) << name;
    EXPECT_FALSE((*MakeLoss('"' + std::string(name) + '"'))->from_logits()) << name;
  }
  EXPECT_FALSE((*MakeLoss("\"mse\""))->from_logits());
}

TEST(LossConfigTest, EveryClassReadsBackWhatItWrites) {
  for (const std::string& name : LossTable().Names()) {
    const std::string config = Config('"' + name + '"');
    EXPECT_THAT(config, HasSubstr('"' + name + '"'));
    EXPECT_EQ(Config(config), config);
  }
  const std::string focal = Config(
      R"({"class_name": "BinaryFocalCrossentropy", "config": {"alpha": 0.5, "gamma": 1,
      "apply_class_balancing": true, "from_logits": true, "label_smoothing": 0.2}})");
  EXPECT_EQ(
      focal,
      R"({"class_name":"BinaryFocalCrossentropy","config":{"alpha":0.5,)"
      R"("apply_class_balancing":true,"from_logits":true,"gamma":1.0,"label_smoothing":0.2}})");
  EXPECT_EQ(Config(focal), focal);
}

TEST(LossConfigTest, AxesOfDice) {
  const auto dice = [](const std::string& axis) {
    return R"({"class_name": "Dice", "config": {"axis": )" + axis + "}}";
  };
  EXPECT_THAT(Config(dice("[1, 2, -1]")), HasSubstr("[1,2,-1]"));
  EXPECT_THAT(Config(dice("2")), HasSubstr("[2]"));
  EXPECT_THAT(Config(dice("null")), HasSubstr("null"));
  for (const char* wrong : {"[]", "\"a\"", "[1.5]", "[100]", "[[1]]", "{}"}) {
    EXPECT_THAT(Error(dice(wrong), absl::StatusCode::kInvalidArgument),
                HasSubstr("$.loss.config.axis: is "))
        << wrong;
  }
}

TEST(LossConfigTest, UnknownClassIsUnimplementedAndNamesTheNearest) {
  EXPECT_THAT(Error("\"Sparse_categorical_crossentropi\"", absl::StatusCode::kUnimplemented),
              AllOf(HasSubstr("$.loss: is \"Sparse_categorical_crossentropi\""),
                    HasSubstr("\"SparseCategoricalCrossentropy\"")));
  EXPECT_THAT(Error(R"({"class_name": "CTC", "config": {}})", absl::StatusCode::kUnimplemented),
              HasSubstr("$.loss.class_name: is \"CTC\""));
}

TEST(LossConfigTest, RejectsOptionsThatChangeNumbers) {
  const auto error = [](const std::string& option) {
    return Error(R"({"class_name": "SparseCategoricalCrossentropy", "config": {)" + option + "}}",
                 absl::StatusCode::kUnimplemented);
  };
  EXPECT_EQ(error(R"("reduction": "sum")"),
            "$.loss.config.reduction: is \"sum\"; Shoal averages the loss over the batch, so this "
            "must be "
            "\"sum_over_batch_size\" or left out");
  EXPECT_EQ(error(R"("ignore_class": 255)"),
            "$.loss.config.ignore_class: is 255; Shoal has no class to ignore, so this must be "
            "null or left out");
  EXPECT_THAT(error(R"("axis": 1)"), HasSubstr("$.loss.config.axis: is 1; "));
  EXPECT_THAT(error(R"("dtype": "float16")"), HasSubstr("$.loss.config.dtype: is \"float16\"; "));
}

TEST(LossConfigTest, RejectsWrongTypesAndUnknownOptions) {
  constexpr auto kWrong = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(Error(R"({"class_name": "MeanSquaredError", "config": {"from_logits": true}})", kWrong),
            "$.loss.config.from_logits: is not a known key of \"MeanSquaredError\"; known: fn, "
            "reduction, dtype, name");
  EXPECT_EQ(Error(R"({"class_name": "CategoricalCrossentropy", "config": {"label_smoothing": 2}})",
                  kWrong),
            "$.loss.config.label_smoothing: is 2; must be a number from 0 to 1");
  EXPECT_EQ(Error(R"({"class_name": "Huber", "config": {"delta": 0}})", kWrong),
            "$.loss.config.delta: is 0; must be a number greater than 0, at most 1000000000");
  EXPECT_EQ(
      Error("3", kWrong),
      "$.loss: is 3, an integer; must be a name, or an object with \"class_name\" and \"config\"");
  EXPECT_EQ(Error("{\"class_name\": 3}", kWrong), "$.loss.class_name: is 3; must be a string");
  Error("{", kWrong);
}

TEST(LossConfigTest, TheDocumentHasTheRowsOfTheTable) {
  EXPECT_THAT(DocumentedRows("loss_table.cc"), ElementsAreArray(LossTable().Docs(true)));
}

}  // namespace
}  // namespace shoal
