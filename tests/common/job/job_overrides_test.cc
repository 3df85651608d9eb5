#include <gmock/gmock.h>

#include "common/job/job.h"
#include "tests/common/job/job_files.h"

namespace shoal {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

JobOverride Set(const std::string& field, const std::string& value) {
  return {"--set", field, value};
}

class JobOverridesTest : public JobFilesTest {
 protected:
  Job Load(const json& root, const std::vector<JobOverride>& overrides) {
    const auto job = LoadJob(WriteJob(root), /*check_data=*/false, overrides, &overridden_);
    EXPECT_TRUE(job.ok()) << job.status();
    return job.value_or(Job{});
  }
  std::string LoadError(const json& root, const std::vector<JobOverride>& overrides) {
    const auto job = LoadJob(WriteJob(root), /*check_data=*/false, overrides);
    EXPECT_EQ(job.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(job.status().message());
  }

  std::vector<std::string> overridden_;
};

TEST_F(JobOverridesTest, AnOverrideEqualsTheFieldInTheFile) {
  json root = MinimalJob();
  root["optimizer"] = {{"class_name", "Adam"}, {"config", {{"learning_rate", 0.001}}}};
  const Job job =
      Load(root, {{"--epochs", "epochs", "3"}, Set("optimizer.config.learning_rate", "0.01")});
  EXPECT_EQ(job.epochs, 3u);
  EXPECT_THAT(job.optimizer, HasSubstr(R"("learning_rate":0.01,)"));
  EXPECT_THAT(overridden_,
              ElementsAre(StartsWith("--epochs: $.epochs is 3; 1 "),
                          StartsWith("--set: $.optimizer.config.learning_rate is 0.01; 0.001 ")));
  root["epochs"] = 3;
  root["optimizer"]["config"]["learning_rate"] = 0.01;
  EXPECT_EQ(job.ResolvedText(), Load(root, {}).ResolvedText());
  EXPECT_THAT(overridden_, IsEmpty());
}

TEST_F(JobOverridesTest, AnOverrideAddsAnAbsentField) {
  const Job job = Load(MinimalJob(), {Set("checkpoint.keep", "7")});
  EXPECT_EQ(job.checkpoint.keep, 7);
  EXPECT_THAT(overridden_, ElementsAre(StartsWith("--set: $.checkpoint.keep is 7; absent ")));
}

TEST_F(JobOverridesTest, AnOverrideWithoutEffectIsReported) {
  json root = MinimalJob();
  root["optimizer"] = "adam";
  Load(root, {{"--epochs", "epochs", "1"}, Set("optimizer", "adam")});
  EXPECT_THAT(overridden_, ElementsAre(StartsWith("--epochs: $.epochs is 1, as "),
                                       StartsWith("--set: $.optimizer is \"adam\", as ")));
}

TEST_F(JobOverridesTest, AnOverrideExpandsAPlainName) {
  json root = MinimalJob();
  root["optimizer"] = "adam";
  root["loss"] = "sparse_categorical_crossentropy";
  root["strategy"] = "async";
  const Job job =
      Load(root, {Set("optimizer.config.learning_rate", "0.5"), Set("optimizer.config.beta_1", "0"),
                  Set("loss.config.from_logits", "true"), Set("strategy.window_steps", "8")});
  EXPECT_THAT(job.optimizer, HasSubstr(R"("class_name":"Adam")"));
  EXPECT_THAT(job.optimizer, HasSubstr(R"("learning_rate":0.5,)"));
  EXPECT_THAT(job.optimizer, HasSubstr(R"("beta_1":0.0,)"));
  EXPECT_THAT(job.loss, HasSubstr(R"("from_logits":true)"));
  EXPECT_EQ(job.strategy.window_steps, 8u);
}

TEST_F(JobOverridesTest, AValueThatIsNotJsonIsAString) {
  const Job job = Load(
      MinimalJob(), {Set("name", "second"), Set("loss", "mse"), Set("metrics", R"(["accuracy"])"),
                     Set("model", (directory_ / "model.json").string())});
  EXPECT_EQ(job.name, "second");
  EXPECT_THAT(job.metrics, ElementsAre("accuracy"));
}

// A string is meant by no text that begins as an object or is in brackets.
TEST_F(JobOverridesTest, JsonThatIsBrokenIsSaidToBe) {
  EXPECT_THAT(LoadError(MinimalJob(), {Set("data.test", R"({"images": "a", labels: "b"})")}),
              AllOf(StartsWith("--set: $.data.test: is not JSON: "), HasSubstr("column 17"),
                    Not(HasSubstr("an object"))));
  EXPECT_THAT(LoadError(MinimalJob(), {Set("metrics", "[accuracy]")}),
              AllOf(StartsWith("--set: $.metrics: is not JSON: "), HasSubstr("'metrics=\"...\"'")));
}

// As those of any command do; in the file they start from its folder.
TEST_F(JobOverridesTest, PathsStartFromTheCurrentFolder) {
  const std::string here = std::filesystem::current_path().string();
  ASSERT_NE(here, directory_.string());
  const Job job = Load(MinimalJob(), {Set("data.training.images", "other/x.npy"),
                                      Set("data.test", R"({"images": "a", "labels": "/b"})")});
  EXPECT_EQ(job.training.images, here + "/other/x.npy");
  EXPECT_EQ(job.training.labels, Load(MinimalJob(), {}).training.labels);
  EXPECT_EQ(job.test.images, here + "/a");
  EXPECT_EQ(job.test.labels, "/b");
}

TEST_F(JobOverridesTest, EpochsAndStepsReplaceEachOther) {
  json root = MinimalJob();
  EXPECT_EQ(Load(root, {Set("steps", "50")}).epochs, 0u);
  EXPECT_THAT(overridden_, ElementsAre(StartsWith("--set: $.steps is 50; absent "),
                                       StartsWith("--set: $.epochs is left ")));
  root.erase("epochs");
  root["steps"] = 50;
  const Job job = Load(root, {{"--epochs", "epochs", "3"}});
  EXPECT_EQ(job.epochs, 3u);
  EXPECT_EQ(job.steps, 0u);
  EXPECT_THAT(LoadError(root, {{"--epochs", "epochs", "3"}, Set("steps", "5")}),
              HasSubstr("$.steps: "));
}

TEST_F(JobOverridesTest, ErrorsNameTheFlag) {
  const json root = MinimalJob();
  EXPECT_THAT(LoadError(root, {Set("bacth_size", "3")}),
              AllOf(StartsWith("--set: $.bacth_size: "), HasSubstr("\"batch_size\"")));
  EXPECT_THAT(LoadError(root, {Set("optimzer.config.learning_rate", "3")}),
              AllOf(StartsWith("--set: $.optimzer: "), HasSubstr("\"optimizer\"")));
  EXPECT_THAT(LoadError(root, {{"--batch_size", "batch_size", "12x"}}),
              StartsWith("--batch_size: $.batch_size: is \"12x\"; "));
  EXPECT_THAT(LoadError(root, {Set("optimizer.config.learning_rate", "-1")}),
              StartsWith("--set: $.optimizer.config.learning_rate: is -1; "));
  EXPECT_THAT(LoadError(root, {Set("epochs.of", "3")}),
              StartsWith("--set: $.epochs.of: $.epochs is 1, "));
  EXPECT_THAT(LoadError(root, {{"--epochs", "epochs", "3"}, Set("epochs", "4")}),
              AllOf(StartsWith("--set: $.epochs: "), HasSubstr("by --epochs")));
  EXPECT_THAT(LoadError(root, {Set("steps", "4"), {"--epochs", "epochs", "3"}}),
              AllOf(StartsWith("--set: $.steps: "), HasSubstr("$.epochs by --epochs")));
}

TEST_F(JobOverridesTest, ErrorsOfTheFileNameTheFile) {
  json root = MinimalJob();
  root["epochs"] = -1;
  root["epochs_more"] = 1;
  const std::string message = LoadError(root, {Set("name", "a"), Set("epoch", "3")});
  EXPECT_THAT(message,
              AllOf(HasSubstr("job.json: $.epochs: is -1"), HasSubstr("job.json: $.epochs_more: "),
                    HasSubstr("--set: $.epoch: "), Not(HasSubstr("--set: $.epochs"))));
  EXPECT_THAT(LoadError(json::array({1}), {Set("name", "a")}),
              AllOf(HasSubstr("--set: $.name: $ is [1]"), HasSubstr("job.json: $: is [1]")));
}

// "$." and what lies deep are JSON too, and no way to break the reader.
TEST_F(JobOverridesTest, AnythingMayBeGiven) {
  const std::string deep(1000, '[');
  EXPECT_THAT(LoadError(MinimalJob(), {Set("metrics", deep)}), StartsWith("--set: $.metrics: is "));
  EXPECT_THAT(LoadError(MinimalJob(), {Set("a\n.\xff", "{}")}), StartsWith("--set: $["));
  EXPECT_THAT(LoadError(MinimalJob(), {Set("seed", "9223372036854775808")}),
              StartsWith("--set: $.seed: is 9223372036854775808; "));
}

TEST_F(JobOverridesTest, AnOverrideThatIsNotUtf8IsRejected) {
  EXPECT_THAT(LoadError(MinimalJob(), {Set("data.training.images", "/tmp/\xff.npy")}),
              AllOf(StartsWith("--set: $.data.training.images: "), HasSubstr("/tmp/\\xff.npy")));
  EXPECT_THAT(LoadError(MinimalJob(), {Set("class_weight.\xff", "1")}),
              AllOf(StartsWith("--set: $.class_weight["), HasSubstr("\\xff")));
}

TEST_F(JobOverridesTest, ANumberTakesThePlaceOfASchedule) {
  json root = MinimalJob();
  root["optimizer"] = {{"class_name", "SGD"},
                       {"config",
                        {{"learning_rate",
                          {{"class_name", "CosineDecay"},
                           {"config", {{"initial_learning_rate", 0.1}, {"decay_steps", 10}}}}}}}};
  const Job job = Load(root, {Set("optimizer.config.learning_rate.config.decay_steps", "20")});
  EXPECT_THAT(job.optimizer, HasSubstr(R"("decay_steps":20.0)"));
  EXPECT_THAT(Load(root, {Set("optimizer.config.learning_rate", "0.01")}).optimizer,
              HasSubstr(R"("learning_rate":0.01,)"));
}

}  // namespace
}  // namespace shoal
