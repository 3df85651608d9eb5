#include "common/job/loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace shoal {
namespace {

using ::testing::HasSubstr;

std::string ParseError(const std::string& text, absl::StatusCode code) {
  const auto loss = ParseLoss(text, "$.loss");
  EXPECT_EQ(loss.status().code(), code) << text << ": " << loss.status();
  return std::string(loss.status().message());
}

TEST(LossTest, ReadsAllNamesThatKerasTakes) {
  for (const char* name : {"sparse_categorical_crossentropy", "SparseCategoricalCrossentropy"}) {
    EXPECT_EQ(ParseLoss(nlohmann::json(name).dump(), "$")->class_name,
              "SparseCategoricalCrossentropy");
  }
  EXPECT_EQ(ParseLoss("\"categorical_crossentropy\"", "$")->class_name, "CategoricalCrossentropy");
  for (const char* name :
       {"\"mse\"", "\"MSE\"", "\"mean_squared_error\"", "{\"class_name\": \"MeanSquaredError\"}"}) {
    EXPECT_EQ(ParseLoss(name, "$")->class_name, "MeanSquaredError");
  }
}

TEST(LossTest, ReadsWhatKeras3Writes) {
  const auto loss =
      ParseLoss(R"({"module": "keras.losses", "class_name": "CategoricalCrossentropy", "config":
      {"name": "categorical_crossentropy", "reduction": "sum_over_batch_size", "from_logits": true,
       "label_smoothing": 0.1, "axis": -1}, "registered_name": null})",
                "$");
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_TRUE(loss->from_logits);
  EXPECT_EQ(loss->label_smoothing, 0.1);
}

TEST(LossTest, ReadsWhatKeras2Writes) {
  const auto loss =
      ParseLoss(R"({"class_name": "SparseCategoricalCrossentropy", "config": {"reduction": "auto",
      "name": "sparse_categorical_crossentropy", "from_logits": true, "ignore_class": null,
      "fn": "sparse_categorical_crossentropy"}})",
                "$");
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_TRUE(loss->from_logits);
}

TEST(LossTest, UnknownClassIsUnimplementedAndNamesTheNearest) {
  EXPECT_EQ(ParseError("\"Sparse_categorical_crossentropi\"", absl::StatusCode::kUnimplemented),
            "$.loss: is \"Sparse_categorical_crossentropi\", a loss that Shoal lacks; did you mean "
            "\"SparseCategoricalCrossentropy\"? Known: SparseCategoricalCrossentropy, "
            "CategoricalCrossentropy, MeanSquaredError");
  EXPECT_THAT(ParseError(R"({"class_name": "Huber", "config": {"delta": 1}})",
                         absl::StatusCode::kUnimplemented),
              HasSubstr("$.loss.class_name: is \"Huber\", a loss that Shoal lacks; known: "));
}

TEST(LossTest, RefusesOptionsThatChangeNumbers) {
  const auto error = [](const std::string& option) {
    return ParseError(
        R"({"class_name": "SparseCategoricalCrossentropy", "config": {)" + option + "}}",
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

TEST(LossTest, RefusesWrongTypesAndUnknownOptions) {
  EXPECT_EQ(ParseError(R"({"class_name": "MeanSquaredError", "config": {"from_logits": true}})",
                       absl::StatusCode::kInvalidArgument),
            "$.loss.config.from_logits: is not a known key; known: name, fn, reduction, dtype");
  EXPECT_EQ(
      ParseError(R"({"class_name": "CategoricalCrossentropy", "config": {"label_smoothing": 2}})",
                 absl::StatusCode::kInvalidArgument),
      "$.loss.config.label_smoothing: is 2; must be a number from 0 to 1");
  EXPECT_EQ(
      ParseError("3", absl::StatusCode::kInvalidArgument),
      "$.loss: is 3, an integer; must be a name, or an object with \"class_name\" and \"config\"");
  EXPECT_EQ(ParseError("{\"class_name\": 3}", absl::StatusCode::kInvalidArgument),
            "$.loss.class_name: is 3; must be a string");
  ParseError("{", absl::StatusCode::kInvalidArgument);
}

TEST(LossTest, WritesWhatItReads) {
  Job::Loss loss{"CategoricalCrossentropy", true, 0.25};
  const auto again = ParseLoss(LossToJson(loss).dump(), "$");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->class_name, loss.class_name);
  EXPECT_EQ(again->from_logits, loss.from_logits);
  EXPECT_EQ(again->label_smoothing, loss.label_smoothing);
}

}  // namespace
}  // namespace shoal
