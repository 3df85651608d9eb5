#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/optimizer/optimizer.h"

namespace shoal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string ParseError(const std::string& text, absl::StatusCode code) {
  const auto optimizer = MakeOptimizer(text);
  EXPECT_EQ(optimizer.status().code(), code) << text << ": " << optimizer.status();
  return std::string(optimizer.status().message());
}

// The config with every option written out.
std::string Resolved(const std::string& text) {
  const auto optimizer = MakeOptimizer(text);
  EXPECT_TRUE(optimizer.ok()) << optimizer.status();
  return optimizer.ok() ? (*optimizer)->config() : "";
}

TEST(OptimizerConfigTest, HasKerasDefaults) {
  EXPECT_EQ(Resolved("\"sgd\""),
            R"({"class_name":"SGD","config":{"learning_rate":0.01,"momentum":0.0,)"
            R"("nesterov":false,"weight_decay":0.0}})");
  EXPECT_EQ(Resolved(R"({"class_name": "Adam"})"),
            R"({"class_name":"Adam","config":{"beta_1":0.9,"beta_2":0.999,"epsilon":1e-07,)"
            R"("learning_rate":0.001,"weight_decay":0.0}})");
}

TEST(OptimizerConfigTest, ReadsWhatKeras3Writes) {
  const std::string config = Resolved(
      R"({"module": "keras.optimizers", "class_name": "Adam", "config": {"name": "adam",
      "learning_rate": 0.0010000000474974513, "weight_decay": 0.004, "clipnorm": null, "global_clipnorm": null,
      "clipvalue": null, "use_ema": false, "ema_momentum": 0.99, "ema_overwrite_frequency": null,
      "loss_scale_factor": null, "gradient_accumulation_steps": null, "beta_1": 0.8, "beta_2": 0.99,
      "epsilon": 1e-07, "amsgrad": false}, "registered_name": null})");
  EXPECT_THAT(config, HasSubstr(R"("learning_rate":0.0010000000474974513,)"));
  EXPECT_THAT(config, HasSubstr(R"("weight_decay":0.004)"));
  EXPECT_THAT(config, HasSubstr(R"("beta_1":0.8,)"));
}

TEST(OptimizerConfigTest, ReadsWhatKeras2Writes) {
  const std::string config =
      Resolved(R"({"class_name": "SGD", "config": {"name": "SGD", "weight_decay": null,
      "clipnorm": null, "global_clipnorm": null, "clipvalue": null, "use_ema": false, "ema_momentum": 0.99,
      "ema_overwrite_frequency": null, "jit_compile": true, "is_legacy_optimizer": false, "decay": 0.0,
      "learning_rate": 0.05, "momentum": 0.9, "nesterov": true}})");
  EXPECT_THAT(config, HasSubstr(R"("momentum":0.9,)"));
  EXPECT_THAT(config, HasSubstr(R"("nesterov":true)"));
}

// Equal optimizers give equal texts, so that a run goes on with a job that is spelt otherwise.
TEST(OptimizerConfigTest, IsCanonicalAndReadsBack) {
  const std::string config =
      Resolved(R"({"config": {"learning_rate": 1, "momentum": 0.30000000000000004,
      "weight_decay": null}, "class_name": "sgd"})");
  EXPECT_EQ(config, R"({"class_name":"SGD","config":{"learning_rate":1.0,)"
                    R"("momentum":0.30000000000000004,"nesterov":false,"weight_decay":0.0}})");
  EXPECT_EQ(Resolved(config), config);
}

TEST(OptimizerConfigTest, RefusesWhatChangesNumbersByName) {
  const auto error = [](const std::string& option) {
    return ParseError(R"({"class_name": "Adam", "config": {)" + option + "}}",
                      absl::StatusCode::kUnimplemented);
  };
  EXPECT_EQ(error(R"("clipnorm": 1.0)"),
            "$.optimizer.config.clipnorm: is 1.0; Shoal has no clipping of gradients, so this must "
            "be null or left "
            "out");
  EXPECT_THAT(error(R"("global_clipnorm": 1)"), HasSubstr("config.global_clipnorm: is 1; "));
  EXPECT_THAT(error(R"("clipvalue": 0.5)"), HasSubstr("config.clipvalue: is 0.5; "));
  EXPECT_THAT(error(R"("use_ema": true)"),
              HasSubstr("config.use_ema: is true; Shoal has no moving average"));
  EXPECT_THAT(error(R"("amsgrad": true)"),
              HasSubstr("config.amsgrad: is true; Shoal has no AMSGrad"));
  EXPECT_THAT(error(R"("loss_scale_factor": 2)"), HasSubstr("config.loss_scale_factor: is 2; "));
  EXPECT_THAT(error(R"("gradient_accumulation_steps": 4)"),
              HasSubstr("gradient_accumulation_steps: is 4; "));
  EXPECT_THAT(error(R"("decay": 0.1)"), HasSubstr("config.decay: is 0.1; "));
  EXPECT_THAT(error(R"("learning_rate": {"class_name": "ExponentialDecay", "config": {}})"),
              HasSubstr("config.learning_rate: is the schedule \"ExponentialDecay\"; "));
}

TEST(OptimizerConfigTest, UnknownClassIsUnimplementedAndNamesTheNearest) {
  EXPECT_EQ(ParseError("\"adm\"", absl::StatusCode::kUnimplemented),
            "$.optimizer: is \"adm\", an optimizer that Shoal lacks; did you mean \"Adam\"? Known: "
            "SGD, Adam");
  EXPECT_EQ(
      ParseError(R"({"class_name": "RMSprop", "config": {"rho": 0.9}})",
                 absl::StatusCode::kUnimplemented),
      "$.optimizer.class_name: is \"RMSprop\", an optimizer that Shoal lacks; known: SGD, Adam");
}

TEST(OptimizerConfigTest, RefusesImpossibleValues) {
  const auto error = [](const std::string& name, const std::string& option) {
    return ParseError(R"({"class_name": ")" + name + R"(", "config": {)" + option + "}}",
                      absl::StatusCode::kInvalidArgument);
  };
  EXPECT_EQ(
      error("SGD", R"("learning_rate": -0.1)"),
      "$.optimizer.config.learning_rate: is -0.1; must be a number greater than 0, at most 1000");
  EXPECT_EQ(error("Adam", R"("beta_2": 1)"),
            "$.optimizer.config.beta_2: is 1; must be a number from 0 and less than 1");
  EXPECT_EQ(error("SGD", R"("momentum": 1.5)"),
            "$.optimizer.config.momentum: is 1.5; must be a number from 0 to 1");
  EXPECT_THAT(error("SGD", R"("beta_1": 0.9)"), HasSubstr("config.beta_1: is not a known key"));
  EXPECT_THAT(error("SGD", R"("learning_rte": 0.9)"), HasSubstr("did you mean \"learning_rate\"?"));
}

std::vector<std::string> SlotNames(const std::string& text) {
  return MakeOptimizer(text).value()->slot_names();
}

TEST(OptimizerConfigTest, SlotsDependOnTheOptions) {
  EXPECT_THAT(SlotNames("\"sgd\""), IsEmpty());
  EXPECT_THAT(SlotNames(R"({"class_name": "SGD", "config": {"momentum": 0.9}})"),
              ElementsAre("sgd_momentum"));
  EXPECT_THAT(SlotNames("\"adam\""), ElementsAre("adam_m", "adam_v"));
}

}  // namespace
}  // namespace shoal
