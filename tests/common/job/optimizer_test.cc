#include "common/job/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/job/optimizer_slots.h"

namespace shoal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Optimizer = Job::Optimizer;

std::string ParseError(const std::string& text, absl::StatusCode code) {
  const auto optimizer = ParseOptimizer(text, "$.optimizer");
  EXPECT_EQ(optimizer.status().code(), code) << text << ": " << optimizer.status();
  return std::string(optimizer.status().message());
}

TEST(OptimizerTest, HasKerasDefaults) {
  const auto sgd = ParseOptimizer("\"sgd\"", "$");
  ASSERT_TRUE(sgd.ok()) << sgd.status();
  EXPECT_EQ(sgd->kind, Optimizer::Kind::kSgd);
  EXPECT_EQ(sgd->learning_rate, 0.01);
  EXPECT_EQ(sgd->momentum, 0);
  const auto adam = ParseOptimizer("{\"class_name\": \"Adam\"}", "$");
  ASSERT_TRUE(adam.ok()) << adam.status();
  EXPECT_EQ(adam->kind, Optimizer::Kind::kAdam);
  EXPECT_EQ(adam->learning_rate, 0.001);
  EXPECT_EQ(adam->beta_1, 0.9);
  EXPECT_EQ(adam->beta_2, 0.999);
  EXPECT_EQ(adam->epsilon, 1e-7);
  EXPECT_EQ(adam->weight_decay, 0);
}

TEST(OptimizerTest, ReadsWhatKeras3Writes) {
  const auto adam = ParseOptimizer(
      R"({"module": "keras.optimizers", "class_name": "Adam", "config": {"name": "adam",
      "learning_rate": 0.0010000000474974513, "weight_decay": 0.004, "clipnorm": null, "global_clipnorm": null,
      "clipvalue": null, "use_ema": false, "ema_momentum": 0.99, "ema_overwrite_frequency": null,
      "loss_scale_factor": null, "gradient_accumulation_steps": null, "beta_1": 0.8, "beta_2": 0.99,
      "epsilon": 1e-07, "amsgrad": false}, "registered_name": null})",
      "$");
  ASSERT_TRUE(adam.ok()) << adam.status();
  EXPECT_EQ(adam->learning_rate, 0.0010000000474974513);
  EXPECT_EQ(adam->weight_decay, 0.004);
  EXPECT_EQ(adam->beta_1, 0.8);
}

TEST(OptimizerTest, ReadsWhatKeras2Writes) {
  const auto sgd =
      ParseOptimizer(R"({"class_name": "SGD", "config": {"name": "SGD", "weight_decay": null,
      "clipnorm": null, "global_clipnorm": null, "clipvalue": null, "use_ema": false, "ema_momentum": 0.99,
      "ema_overwrite_frequency": null, "jit_compile": true, "is_legacy_optimizer": false, "decay": 0.0,
      "learning_rate": 0.05, "momentum": 0.9, "nesterov": true}})",
                     "$");
  ASSERT_TRUE(sgd.ok()) << sgd.status();
  EXPECT_EQ(sgd->momentum, 0.9);
  EXPECT_TRUE(sgd->nesterov);
}

TEST(OptimizerTest, RefusesWhatChangesNumbersByName) {
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

TEST(OptimizerTest, UnknownClassIsUnimplementedAndNamesTheNearest) {
  EXPECT_EQ(ParseError("\"adm\"", absl::StatusCode::kUnimplemented),
            "$.optimizer: is \"adm\", an optimizer that Shoal lacks; did you mean \"Adam\"? Known: "
            "SGD, Adam");
  EXPECT_EQ(
      ParseError(R"({"class_name": "RMSprop", "config": {"rho": 0.9}})",
                 absl::StatusCode::kUnimplemented),
      "$.optimizer.class_name: is \"RMSprop\", an optimizer that Shoal lacks; known: SGD, Adam");
}

TEST(OptimizerTest, RefusesImpossibleValues) {
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

TEST(OptimizerTest, WritesWhatItReads) {
  for (const auto kind : {Optimizer::Kind::kSgd, Optimizer::Kind::kAdam}) {
    Optimizer optimizer;
    optimizer.kind = kind;
    optimizer.learning_rate = 0.1 + 0.2;
    optimizer.weight_decay = 1e-4;
    (kind == Optimizer::Kind::kSgd ? optimizer.momentum : optimizer.beta_1) = 0.7;
    const auto again = ParseOptimizer(OptimizerToJson(optimizer).dump(), "$");
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->kind, kind);
    EXPECT_EQ(again->learning_rate, optimizer.learning_rate);
    EXPECT_EQ(again->weight_decay, optimizer.weight_decay);
    EXPECT_EQ(again->momentum, optimizer.momentum);
    EXPECT_EQ(again->beta_1, optimizer.beta_1);
  }
}

TEST(OptimizerSlotsTest, DependOnKindAndMomentum) {
  Optimizer optimizer;
  EXPECT_THAT(OptimizerSlotNames(optimizer), IsEmpty());
  optimizer.momentum = 0.9;
  EXPECT_THAT(OptimizerSlotNames(optimizer), ElementsAre("sgd_momentum"));
  optimizer.kind = Optimizer::Kind::kAdam;
  EXPECT_THAT(OptimizerSlotNames(optimizer), ElementsAre("adam_m", "adam_v"));
}

}  // namespace
}  // namespace shoal
