// Which variables an optimizer's "exclude_from_weight_decay" means, and what is rejected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/optimizer/optimizer.h"

namespace shoal {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const std::vector<std::string> kVariables = {"bias_net/dense/kernel",
                                             "bias_net/dense/bias",
                                             "dense/kernel",
                                             "dense/bias",
                                             "norm/gamma",
                                             "norm/beta",
                                             "norm/moving_mean"};

std::string Config(const json& excluded, const json& weight_decay = 0.1) {
  return json({{"class_name", "SGD"},
               {"config",
                {{"weight_decay", weight_decay}, {"exclude_from_weight_decay", excluded}}}})
      .dump();
}

std::vector<std::string> Excluded(const json& entries) {
  const auto optimizer = MakeOptimizer(Config(entries));
  EXPECT_TRUE(optimizer.ok()) << optimizer.status();
  std::vector<std::string> excluded;
  for (const std::string& variable : kVariables) {
    if (optimizer.ok() && (*optimizer)->decay_exclusions().Excludes(variable))
      excluded.push_back(variable);
  }
  return excluded;
}

TEST(DecayExclusionsTest, APatternIsSearchedForInTheLastPartOfAPath) {
  EXPECT_THAT(Excluded({"bias"}), ElementsAre("bias_net/dense/bias", "dense/bias"));
  EXPECT_THAT(Excluded({"am+a", "ean$"}), ElementsAre("norm/gamma", "norm/moving_mean"));
  EXPECT_THAT(Excluded({"^b"}), ElementsAre("bias_net/dense/bias", "dense/bias", "norm/beta"));
  EXPECT_THAT(Excluded({"^(gamma|beta)$"}), ElementsAre("norm/gamma", "norm/beta"));
  EXPECT_THAT(Excluded({"dense", "Bias", "ias$x"}), IsEmpty());
  EXPECT_THAT(Excluded(json::array()), IsEmpty());
  EXPECT_THAT(Excluded(nullptr), IsEmpty());
}

TEST(DecayExclusionsTest, AnEntryWithASlashIsAWholePath) {
  EXPECT_THAT(Excluded({"dense/bias"}), ElementsAre("dense/bias"));
  EXPECT_THAT(Excluded({"ense/bias", "dense/.*", "dense/"}), IsEmpty());
}

// Equal optimizers give equal texts.
TEST(DecayExclusionsTest, IsCanonical) {
  const auto resolved = [](const std::string& config) {
    return json::parse((*MakeOptimizer(config))->config());
  };
  const json twice = resolved(Config({"gamma", "bias", "dense/bias", "gamma"}));
  EXPECT_EQ(twice["config"]["exclude_from_weight_decay"], json({"bias", "dense/bias", "gamma"}));
  EXPECT_EQ(resolved(twice.dump()), twice);
  // Where nothing decays they make no other job.
  EXPECT_EQ(resolved(Config({"bias"}, nullptr)), resolved("\"sgd\""));
}

std::string Rejection(const json& excluded) {
  const auto optimizer = MakeOptimizer(Config(excluded));
  EXPECT_TRUE(absl::IsInvalidArgument(optimizer.status())) << excluded << optimizer.status();
  return std::string(optimizer.status().message());
}

TEST(DecayExclusionsTest, AValueThatIsNoListOfPatternsIsRejected) {
  const std::string path = "$.optimizer.config.exclude_from_weight_decay";
  EXPECT_THAT(Rejection("bias"), AllOf(StartsWith(path + ": is \"bias\""), HasSubstr(" 4096 ")));
  EXPECT_THAT(Rejection({{"var_names", {"bias"}}}), StartsWith(path + ": is {"));
  EXPECT_THAT(Rejection({"bias", 3}), StartsWith(path + "[1]: is 3"));
  EXPECT_THAT(Rejection({""}), StartsWith(path + "[0]: is \"\"; must be"));
  EXPECT_THAT(Rejection({std::string(1001, 'a')}), HasSubstr("exclude_from_weight_decay[0]: "));
  EXPECT_THAT(Rejection(std::vector<std::string>(4097, "a")), StartsWith(path + ": is 4097; must"));
  EXPECT_THAT(Rejection({"gamma", "*bias"}),
              AllOf(StartsWith(path + "[1]: is \"*bias\""), HasSubstr("RE2")));
  EXPECT_THAT(Rejection({"(?=b)ias"}), HasSubstr("exclude_from_weight_decay[0]: "));
}

// What takes std::regex, or Python, for ever, or much memory.
TEST(DecayExclusionsTest, NoPatternTakesLongOrMuch) {
  EXPECT_THAT(Rejection({"((((x{30}){30}){30}){30})"}),
              HasSubstr("exclude_from_weight_decay[0]: "));
  EXPECT_THAT(Rejection({"(\\pN{100}){10}"}), HasSubstr("too large"));
  const auto optimizer = MakeOptimizer(Config({"^(a+)+$"}));
  ASSERT_TRUE(optimizer.ok()) << optimizer.status();
  EXPECT_FALSE((*optimizer)->decay_exclusions().Excludes(std::string(100'000, 'a') + "b"));
  EXPECT_FALSE((*MakeOptimizer(Config({std::string(499, '(') + "a" + std::string(499, ')')})))
                   ->decay_exclusions()
                   .Excludes(std::string(100'000, 'b')));
}

TEST(DecayExclusionsTest, AnUnmatchedPatternIsRejectedWithTheKnownNames) {
  const auto check = [](const json& excluded) {
    return (*MakeOptimizer(Config(excluded)))->decay_exclusions().Check(kVariables);
  };
  EXPECT_TRUE(check({"bias", "gamma", "moving", "dense/kernel"}).ok());
  EXPECT_TRUE(check(nullptr).ok());
  const auto message = [&](const json& excluded) {
    EXPECT_TRUE(absl::IsInvalidArgument(check(excluded)));
    return std::string(check(excluded).message());
  };
  const std::string path = "$.optimizer.config.exclude_from_weight_decay";
  EXPECT_THAT(message({"bias", "gama"}),
              AllOf(StartsWith(path + ": has \"gama\""), HasSubstr("\"gamma\""),
                    HasSubstr("beta, bias, gamma, kernel, moving_mean")));
  EXPECT_THAT(message({"dense/bia"}),
              AllOf(StartsWith(path + ": has \"dense/bia\""), HasSubstr("\"dense/bias\"")));
  EXPECT_THAT(message({"head/weights"}), HasSubstr("known: bias_net/dense/kernel, "));
}

}  // namespace
}  // namespace shoal
