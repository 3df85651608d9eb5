#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "common/optimizer/optimizer.h"
#include "common/optimizer/optimizer_table.h"
#include "common/optimizer/schedules/schedule_table.h"
#include "tests/common/json/documented_rows.h"

namespace shoal {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAreArray;

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

TEST(OptimizerConfigTest, APlainNameHasEveryOptionWrittenOut) {
  const json sgd = json::parse(Resolved("\"sgd\""));
  EXPECT_EQ(sgd["class_name"], "SGD");
  EXPECT_EQ(sgd["config"]["learning_rate"], 0.01);
  EXPECT_EQ(sgd["config"]["momentum"], 0);
  EXPECT_EQ(sgd["config"]["nesterov"], false);
  EXPECT_EQ(sgd["config"]["weight_decay"], 0);
  EXPECT_EQ(sgd["config"]["clipnorm"], nullptr);
  const json adam = json::parse(Resolved(R"({"class_name": "Adam"})"));
  EXPECT_EQ(adam["config"]["learning_rate"], 0.001);
  EXPECT_EQ(adam["config"]["beta_2"], 0.999);
  EXPECT_EQ(adam["config"]["epsilon"], 1e-7);
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

TEST(OptimizerConfigTest, AnOptimizerOrScheduleOfOnesOwnIsRejected) {
  constexpr auto kLacking = absl::StatusCode::kUnimplemented;
  EXPECT_THAT(ParseError(R"({"module": null, "class_name": "Adam", "config": {"name": "adam"},
                             "registered_name": "Adam"})",
                         kLacking),
              HasSubstr("$.optimizer.registered_name: is \"Adam\""));
  EXPECT_THAT(ParseError(R"({"module": "keras.optimizers", "class_name": "Adam", "config": {
                             "learning_rate": {"module": null, "class_name": "CosineDecay",
                               "config": {"initial_learning_rate": 0.1, "decay_steps": 100},
                               "registered_name": "CosineDecay"}}, "registered_name": null})",
                         kLacking),
              HasSubstr("$.optimizer.config.learning_rate.registered_name: is \"CosineDecay\""));
}

// Equal optimizers give equal texts, so that a run goes on with a job that is spelt otherwise.
TEST(OptimizerConfigTest, IsCanonicalAndReadsBack) {
  const std::string config =
      Resolved(R"({"config": {"learning_rate": 1, "momentum": 0.30000000000000004,
      "weight_decay": null}, "class_name": "sgd"})");
  EXPECT_EQ(config,
            Resolved(R"({"class_name": "SGD", "config": {"nesterov": false, "clipnorm": null,
      "weight_decay": 0, "momentum": 0.30000000000000004, "learning_rate": 1.0}})"));
  EXPECT_THAT(config, HasSubstr(R"("momentum":0.30000000000000004,)"));
  EXPECT_EQ(Resolved(config), config);
  // What changes nothing makes no other job.
  EXPECT_EQ(Resolved(R"({"class_name": "SGD", "config": {"ema_momentum": 0.5,
                         "ema_overwrite_frequency": 3}})"),
            Resolved("\"sgd\""));
}

TEST(OptimizerConfigTest, RejectsWhatChangesNumbersByName) {
  const auto error = [](const std::string& option) {
    return ParseError(R"({"class_name": "Adam", "config": {)" + option + "}}",
                      absl::StatusCode::kUnimplemented);
  };
  EXPECT_THAT(error(R"("loss_scale_factor": 2)"), HasSubstr("config.loss_scale_factor: is 2; "));
  EXPECT_THAT(error(R"("gradient_accumulation_steps": 4)"),
              HasSubstr("gradient_accumulation_steps: is 4; "));
  EXPECT_THAT(error(R"("decay": 0.1)"), HasSubstr("config.decay: is 0.1; "));
}

TEST(OptimizerConfigTest, UnknownClassIsUnimplementedAndNamesTheNearest) {
  EXPECT_EQ(ParseError("\"adm\"", absl::StatusCode::kUnimplemented),
            "$.optimizer: is \"adm\", an optimizer that Shoal lacks; did you mean \"Adam\"? Known: "
            "SGD, Adam, AdamW, Adamax, Nadam, Adagrad, Adadelta, RMSprop, Ftrl, Lion, Lamb");
  EXPECT_THAT(ParseError(R"({"class_name": "Muon", "config": {"epsilon": 1}})",
                         absl::StatusCode::kUnimplemented),
              HasSubstr("$.optimizer.class_name: is \"Muon\""));
  EXPECT_THAT(ParseError(R"({"class_name": "LossScaleOptimizer", "config": {}})",
                         absl::StatusCode::kUnimplemented),
              HasSubstr("give its inner_optimizer"));
}

TEST(OptimizerConfigTest, RejectsImpossibleValues) {
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
  EXPECT_EQ(error("SGD", R"("clipnorm": 0)"),
            "$.optimizer.config.clipnorm: is 0; must be a number greater than 0, at most 1000000");
  EXPECT_EQ(
      error("SGD", R"("clipvalue": 1, "global_clipnorm": 2)"),
      "$.optimizer.config.global_clipnorm: is 2, together with clipvalue; give one of the two");
  EXPECT_EQ(error("SGD", R"("ema_overwrite_frequency": 0)"),
            "$.optimizer.config.ema_overwrite_frequency: is 0; must be an integer from 1 to "
            "1099511627776");
  EXPECT_THAT(error("SGD", R"("beta_1": 0.9)"), HasSubstr("config.beta_1: "));
  EXPECT_THAT(error("SGD", R"("learning_rte": 0.9)"), HasSubstr("\"learning_rate\""));
}

// A number of Keras's configs may have come through float32.
bool Near(const json& a, const json& b) {
  if (a.is_number_float() && b.is_number_float()) {
    return std::abs(a.get<double>() - b.get<double>()) <= 1e-6 * std::abs(b.get<double>());
  }
  if (!a.is_object() || !b.is_object() || a.size() != b.size()) return a == b;
  for (const auto& [key, value] : a.items()) {
    if (!b.contains(key) || !Near(value, b[key])) return false;
  }
  return true;
}

// testdata/keras_configs.json: what keras.optimizers.serialize() gives of each class as Keras makes
// it without arguments, and of each schedule, as learning rates of SGD.
TEST(OptimizerConfigTest, DefaultsAreThoseThatKerasWrites) {
  std::ifstream file(std::string(SHOAL_SOURCE_DIR) +
                     "/tests/common/optimizer/testdata/keras_configs.json");
  const json configs = json::parse(file);
  std::vector<std::string> names;
  for (const json& config : configs["optimizers"]) {
    names.push_back(config["class_name"]);
    const json written = json::parse(Resolved(config.dump()));
    const json named = json::parse(Resolved(config["class_name"].dump()));
    EXPECT_TRUE(Near(written, named)) << written << " and " << named;
  }
  EXPECT_THAT(OptimizerTable().Names(), UnorderedElementsAreArray(names));
  names.clear();
  for (const json& config : configs["schedules"]) {
    const json rate = config["config"]["learning_rate"];
    names.push_back(rate["class_name"]);
    const json written = json::parse(Resolved(config.dump()))["config"]["learning_rate"];
    json expected = rate["config"];
    expected.erase("name");
    // Integers of Python are numbers here.
    for (json& value : expected) {
      if (value.is_number_integer()) value = value.get<double>();
    }
    if (expected.contains("boundaries")) expected["boundaries"] = written["config"]["boundaries"];
    EXPECT_TRUE(Near(written["config"], expected)) << written << " and " << expected;
  }
  EXPECT_THAT(ScheduleTable().Names(), UnorderedElementsAreArray(names));
}

std::string ScheduleError(const std::string& schedule, absl::StatusCode code) {
  return ParseError(R"({"class_name": "SGD", "config": {"learning_rate": )" + schedule + "}}",
                    code);
}

TEST(ScheduleConfigTest, AWrongOptionIsNamed) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  const std::string path = "$.optimizer.config.learning_rate";
  EXPECT_THAT(ScheduleError(R"({"class_name": "CosineDcay", "config": {}})",
                            absl::StatusCode::kUnimplemented),
              StartsWith(path + ".class_name: is \"CosineDcay\", a learning rate schedule that "
                                "Shoal lacks; did you mean \"CosineDecay\"?"));
  EXPECT_EQ(
      ScheduleError(R"({"class_name": "CosineDecay", "config": {"initial_learning_rate": 1}})",
                    kInvalid),
      path + ".config.decay_steps: is missing: a number, above 0, to 1000000000000");
  EXPECT_EQ(ScheduleError(R"({"class_name": "ExponentialDecay", "config": {"decay_steps": 0,
                          "initial_learning_rate": 0.1, "decay_rate": 0.9}})",
                          kInvalid),
            path +
                ".config.decay_steps: is 0; must be a number greater than 0, at most "
                "1000000000000");
  EXPECT_THAT(ScheduleError(R"({"class_name": "InverseTimeDecay", "config": {"decay_steps": 1,
                            "initial_learning_rate": 0.1, "decay_rate": 0.9, "stair": true}})",
                            kInvalid),
              HasSubstr(path + ".config.stair: is not a known key of \"InverseTimeDecay\""));
  const auto piecewise = [&](const std::string& boundaries, const std::string& values) {
    return ScheduleError(R"({"class_name": "PiecewiseConstantDecay", "config": {"boundaries": )" +
                             boundaries + R"(, "values": )" + values + "}}",
                         kInvalid);
  };
  EXPECT_EQ(piecewise("[2, 1]", "[1, 2, 3]"),
            path + ".config.boundaries: is [2.0,1.0]; must be rising");
  EXPECT_EQ(piecewise("[1, 2]", "[1, 2]"),
            path +
                ".config.values: is [1.0,2.0]; must be a list of 3 numbers, one more than "
                "boundaries");
  EXPECT_THAT(piecewise("[1, \"a\"]", "[1, 2, 3]"),
              StartsWith(path + ".config.boundaries: is [1,\"a\"]; must be a list of numbers"));
  EXPECT_THAT(piecewise("[]", "[1]"), HasSubstr(path + ".config.boundaries: is []; must be"));
  EXPECT_THAT(ScheduleError(R"({"config": {}})", kInvalid), HasSubstr(path + ".class_name"));
}

TEST(ScheduleConfigTest, StandsInTheResolvedConfigAndReadsBack) {
  const std::string config = Resolved(R"({"class_name": "Adam", "config": {"learning_rate":
      {"module": "keras.optimizers.schedules", "class_name": "CosineDecay", "registered_name": null,
       "config": {"initial_learning_rate": 0, "decay_steps": 100, "name": "CosineDecay",
                  "warmup_target": 0.1, "warmup_steps": 10}}}})");
  EXPECT_THAT(config,
              HasSubstr(R"("learning_rate":{"class_name":"CosineDecay","config":{"alpha":0.0,)"
                        R"("decay_steps":100.0,"initial_learning_rate":0.0,)"
                        R"("warmup_steps":10.0,"warmup_target":0.1}})"));
  EXPECT_EQ(Resolved(config), config);
  const auto optimizer = *MakeOptimizer(config);
  EXPECT_DOUBLE_EQ(optimizer->LearningRate(1), 0);
  EXPECT_DOUBLE_EQ(optimizer->LearningRate(6), 0.05);
  EXPECT_DOUBLE_EQ(optimizer->LearningRate(11), 0.1);
  EXPECT_DOUBLE_EQ(optimizer->LearningRate(61), 0.05);
  EXPECT_NEAR(optimizer->LearningRate(1'000'000), 0, 1e-12);
}

// Keras's restarts are where the periods before them end, whatever the logarithm of one is rounded
// to.
TEST(ScheduleTest, EachRestartBeginsAtTheTop) {
  for (const double t_mul : {1.0, 1.5, 2.0, 3.0, 5.0, 10.0}) {
    const auto optimizer = *MakeOptimizer(
        R"({"class_name": "SGD", "config": {"learning_rate": {"class_name": "CosineDecayRestarts",
        "config": {"initial_learning_rate": 0.5, "first_decay_steps": 16, "t_mul": )" +
        std::to_string(t_mul) + "}}}}");
    double restart = 0, length = 16;
    for (int period = 0; period < 5; ++period) {
      EXPECT_NEAR(optimizer->LearningRate(static_cast<uint64_t>(restart) + 1), 0.5, 1e-12)
          << "t_mul " << t_mul << ", period " << period;
      if (restart > 0) {
        EXPECT_LT(optimizer->LearningRate(static_cast<uint64_t>(restart)), 0.01);
      }
      restart += length;
      length *= t_mul;
    }
  }
}

TEST(ScheduleTest, ACycleOfNoWholeNumberOfUpdatesIsNeverNotANumber) {
  const auto optimizer = *MakeOptimizer(
      R"({"class_name": "SGD", "config": {"learning_rate": {"class_name": "PolynomialDecay",
      "config": {"initial_learning_rate": 0.5, "decay_steps": 0.7, "power": 0.5,
                 "cycle": true}}}})");
  for (uint64_t t = 1; t < 2000; ++t) ASSERT_TRUE(std::isfinite(optimizer->LearningRate(t))) << t;
}

// A case of Keras's for each option that is not at its default: of each class its own, of all those
// that all have.
TEST(OptimizerGoldenTest, EveryOptionIsReached) {
  std::map<std::string, std::set<std::string>> reached;  // by class
  std::set<std::string> reached_by_any;
  for (const char* name : {"optimizers", "optimizer_options", "decay_exclusions"}) {
    std::ifstream file(std::string(SHOAL_SOURCE_DIR) + "/tests/golden/" + name + "/case.json");
    const json golden = json::parse(file);
    for (const json& given : golden["optimizers"]) {
      const auto optimizer = MakeOptimizer(given.dump());
      if (absl::IsUnimplemented(optimizer.status())) continue;
      const json resolved = json::parse((*optimizer)->config());
      const std::string class_name = resolved["class_name"];
      const json defaults = json::parse(Resolved(json(class_name).dump()))["config"];
      for (const auto& [option, value] : resolved["config"].items()) {
        if (value == defaults[option]) continue;
        reached[class_name].insert(option);
        reached_by_any.insert(option);
      }
    }
  }
  for (const std::string& name : OptimizerTable().Names()) {
    const json options = json::parse(Resolved(json(name).dump()))["config"];
    const json common = json::parse(Resolved("\"sgd\""))["config"];
    for (const auto& [option, value] : options.items()) {
      const bool own = !common.contains(option) || option == "momentum" || option == "nesterov";
      EXPECT_TRUE((own ? reached[name] : reached_by_any).contains(option))
          << name << ": " << option;
    }
  }
}

TEST(OptimizerDocsTest, TheDocumentHasTheRowsOfTheTables) {
  EXPECT_THAT(DocumentedRows("optimizer_table.cc"), ElementsAreArray(OptimizerTable().Docs(false)));
  EXPECT_THAT(OuterOptimizerTable().Docs(false),
              testing::Contains(DocumentedRows("outer optimizers in common/optimizer").back()));
  EXPECT_THAT(DocumentedRows("schedule_table.cc"), ElementsAreArray(ScheduleTable().Docs(false)));
}

std::vector<std::string> SlotNames(const std::string& text) {
  return MakeOptimizer(text).value()->slot_names();
}

TEST(OptimizerConfigTest, SlotsDependOnTheOptions) {
  EXPECT_THAT(SlotNames("\"sgd\""), IsEmpty());
  EXPECT_THAT(SlotNames(R"({"class_name": "SGD", "config": {"momentum": 0.9}})"),
              ElementsAre("sgd_momentum"));
  EXPECT_THAT(SlotNames(R"({"class_name": "SGD", "config": {"momentum": 0.9, "use_ema": true}})"),
              ElementsAre("sgd_momentum", "ema_average"));
  EXPECT_THAT(SlotNames("\"adam\""), ElementsAre("adam_m", "adam_v"));
}

}  // namespace
}  // namespace shoal
