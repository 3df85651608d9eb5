#include "cli/validation/validated_job.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/cli/validation/validation_fixture.h"

namespace shoal {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ValidatedJobTest : public ValidationTest {};

TEST_F(ValidatedJobTest, RejectsASlotWithTheNameOfAVariable) {
  json model = DenseModel(6);
  json& layers = model["config"]["layers"];
  layers.push_back(layers[1]);
  layers[1]["config"]["name"] = "d";
  layers[2]["config"]["name"] = "adam_m/d";
  Write("model.json", model.dump());
  json root = MinimalJob();
  root["optimizer"] = "sgd";
  EXPECT_TRUE(ValidateFiles(spec_, WriteJob(root)).ok());
  root["optimizer"] = "adam";
  const absl::Status status = ValidateFiles(spec_, WriteJob(root)).status();
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("model.json: "), HasSubstr("\"adam_m/d/kernel\""),
                    HasSubstr("variable \"d/kernel\"")));
}

TEST_F(ValidatedJobTest, AnExclusionThatMatchesNoVariableIsRejected) {
  json root = MinimalJob();
  const auto validate = [&](const char* excluded) {
    root["optimizer"] = {{"class_name", "AdamW"},
                         {"config", {{"exclude_from_weight_decay", {excluded}}}}};
    return ValidateFiles(spec_, WriteJob(root)).status();
  };
  EXPECT_TRUE(validate("bias").ok());
  EXPECT_THAT(
      std::string(validate("biases").message()),
      AllOf(HasSubstr("job.json: $.optimizer.config.exclude_from_weight_decay: has \"biases\""),
            HasSubstr("bias, kernel")));
}

TEST_F(ValidatedJobTest, WeightsThatAreMissingAreNamedByTheirField) {
  json root = MinimalJob();
  root["initial_weights"] = "nope.keras";
  EXPECT_THAT(std::string(ValidateFiles(spec_, WriteJob(root)).status().message()),
              AllOf(HasSubstr("$.initial_weights: "), HasSubstr("nope.keras")));
}

TEST_F(ValidatedJobTest, RejectsAModelWithNothingToTrain) {
  json model = DenseModel(6);
  model["config"]["layers"].erase(1);
  model["config"]["layers"].push_back({{"class_name", "Flatten"}, {"config", {{"name", "f"}}}});
  Write("model.json", model.dump());
  EXPECT_THAT(std::string(ValidateFiles(spec_, WriteJob(MinimalJob())).status().message()),
              HasSubstr("model.json: "));
}

TEST_F(ValidatedJobTest, ReportsTheErrorsOfBothFilesAndOfTheModel) {
  Write("spec.json", R"({"cluster": {"chief": ["a"], "ps": ["b:1"], "worker": ["c:1"]}})");
  const std::string job = WriteJob({{"name", "n"}});
  const std::string message(ValidateFiles(spec_, job).status().message());
  EXPECT_THAT(message, StartsWith(spec_ + ": $.cluster.chief[0]: is \"a\""));
  EXPECT_THAT(message, HasSubstr(absl::StrCat("\n", job, ": $.model: ")));

  json model = DenseModel(10);
  model["config"]["layers"][1]["class_name"] = "Dens";
  Write("model.json", model.dump());
  const std::string model_message(ValidateFiles(spec_, WriteJob(MinimalJob())).status().message());
  EXPECT_THAT(model_message, HasSubstr("$.cluster.chief[0]"));
  EXPECT_THAT(model_message, HasSubstr(absl::StrCat("\n", (directory_ / "model.json").string(),
                                                    ": $.config.layers[1]")));
  EXPECT_THAT(model_message, HasSubstr("Dens"));

  model["config"]["layers"][0]["config"]["batch_shape"] = "wide";
  Write("model.json", model.dump());
  const std::string both(ValidateFiles("", WriteJob(MinimalJob())).status().message());
  const std::vector<std::string> lines = absl::StrSplit(both, '\n');
  EXPECT_EQ(lines.size(), 2u) << both;
  for (const std::string& line : lines) {
    EXPECT_THAT(line, StartsWith((directory_ / "model.json").string() + ": $.config.layers["));
  }
}

}  // namespace
}  // namespace shoal
