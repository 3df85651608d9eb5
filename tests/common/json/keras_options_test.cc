#include "common/json/keras_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace shoal {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

KerasObject ObjectOf(const json& config, JsonAuthor author) {
  return {.class_name = "Thing",
          .name_path = "$",
          .plain_name = false,
          .config = &config,
          .config_path = "$.config",
          .author = author};
}

TEST(KerasOptionsTest, ReadsTheOptionsOfAJobAndOfAModelAlike) {
  const json config = {{"n", 0.5}, {"i", 7}, {"f", true}, {"o", "b"}};
  for (const JsonAuthor author : {JsonAuthor::kPerson, JsonAuthor::kKeras}) {
    JsonErrors errors("");
    KerasOptions options(ObjectOf(config, author), &errors);
    EXPECT_EQ(options.Number("n", 1, kNonNegativeNumbers), 0.5);
    EXPECT_EQ(options.RequiredInteger("i", {0, 10}), 7);
    EXPECT_TRUE(options.Flag("f", false));
    EXPECT_EQ(options.OneOf("o", {"a", "b"}, 0), 1u);
    EXPECT_EQ(options.Integer("absent", -1, {-1, 10}), -1);
    EXPECT_TRUE(options.Finish().ok()) << errors.ToStatus();
    EXPECT_THAT(options.known(), ElementsAre("n", "i", "f", "o", "absent"));
  }
}

TEST(KerasOptionsTest, NullIsAbsentOnlyInAModel) {
  const json config = {{"n", nullptr}, {"f", nullptr}, {"more", nullptr}};
  JsonErrors of_model("");
  KerasOptions model(ObjectOf(config, JsonAuthor::kKeras), &of_model);
  EXPECT_EQ(model.Number("n", 3, kAllNumbers), 3);
  EXPECT_EQ(model.NumberOrNull("n", 4, kAllNumbers), 4);
  EXPECT_TRUE(model.Flag("f", true));
  EXPECT_TRUE(model.given().Contains("n"));
  EXPECT_TRUE(model.Finish().ok()) << of_model.ToStatus();

  JsonErrors of_job("");
  KerasOptions job(ObjectOf(config, JsonAuthor::kPerson), &of_job);
  job.Number("n", 3, kAllNumbers);
  EXPECT_EQ(job.NumberOrNull("n", 4, kAllNumbers), std::nullopt);
  job.RejectUnknown();
  const std::string message(of_job.ToStatus().message());
  EXPECT_THAT(message, HasSubstr("$.config.n: "));
  EXPECT_THAT(message, HasSubstr("$.config.f: "));
  EXPECT_THAT(message, HasSubstr("$.config.more: "));
}

TEST(KerasOptionsTest, AFloatWithoutFractionIsAnIntegerOnlyInAModel) {
  const json config = {{"i", 6.0}};
  JsonErrors of_model(""), of_job("");
  KerasOptions model(ObjectOf(config, JsonAuthor::kKeras), &of_model);
  EXPECT_EQ(model.Integer("i", 1, {0, 10}), 6);
  EXPECT_TRUE(of_model.empty());
  KerasOptions job(ObjectOf(config, JsonAuthor::kPerson), &of_job);
  EXPECT_EQ(job.Integer("i", 1, {0, 10}), 1);
  EXPECT_FALSE(of_job.empty());
}

TEST(KerasOptionsTest, AnUnknownOptionIsASlipInAJobAndALackInAModel) {
  const json config = {{"unit", 3}};
  for (const auto& [author, code] :
       {std::pair{JsonAuthor::kPerson, absl::StatusCode::kInvalidArgument},
        {JsonAuthor::kKeras, absl::StatusCode::kUnimplemented}}) {
    JsonErrors errors("");
    KerasOptions options(ObjectOf(config, author), &errors);
    options.Integer("units", 1, {1, 10});
    const absl::Status status = options.Finish();
    EXPECT_EQ(status.code(), code);
    EXPECT_THAT(std::string(status.message()), HasSubstr("$.config.unit: "));
  }
}

TEST(KerasOptionsTest, AnUnknownOptionIsReportedWithItsClassAndTheOptions) {
  const json config = {{"zzz", 3}};
  for (const JsonAuthor author : {JsonAuthor::kPerson, JsonAuthor::kKeras}) {
    JsonErrors errors("");
    KerasOptions options(ObjectOf(config, author), &errors);
    options.Integer("units", 1, {1, 10});
    options.Flag("use_bias", true);
    EXPECT_THAT(std::string(options.Finish().message()),
                AllOf(HasSubstr("$.config.zzz: "), HasSubstr(" of \"Thing\""),
                      HasSubstr("nown: units, use_bias")));
  }
}

TEST(KerasOptionsTest, FinishHidesUnknownOptionsBehindOtherErrors) {
  const json config = {{"unit", 3}};
  JsonErrors errors("");
  KerasOptions options(ObjectOf(config, JsonAuthor::kKeras), &errors);
  options.RequiredInteger("units", {1, 10});
  const absl::Status status = options.Finish();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("$.config.units: is missing"));
  EXPECT_THAT(std::string(status.message()), ::testing::Not(HasSubstr("$.config.unit: ")));
}

}  // namespace
}  // namespace shoal
