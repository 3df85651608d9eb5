#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/job/job.h"

namespace shoal {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(DescribeDifferencesTest, EqualTextsHaveNone) {
  EXPECT_THAT(DescribeDifferences(R"({"a": 1, "b": [2]})", R"({"b": [2], "a": 1})"), IsEmpty());
}

TEST(DescribeDifferencesTest, NamesEachJsonPath) {
  EXPECT_THAT(
      DescribeDifferences(
          R"({"batch_size": 64, "data": {"test": {"images": "/t"}}, "model": {"layers": [{"units": 1}, {}]}})",
          R"({"batch_size": 32, "data": {}, "model": {"layers": [{"units": 2}]}, "seed": 1})"),
      ElementsAre("$.batch_size: 64 there, 32 now",
                  "$.data.test: {\"images\":\"/t\"} there, absent now",
                  "$.model.layers[0].units: 1 there, 2 now",
                  "$.model.layers[1]: {} there, absent now", "$.seed: absent there, 1 now"));
}

TEST(DescribeDifferencesTest, AJobMayTrainLongerAndKeepMore) {
  EXPECT_THAT(DescribeDifferences(
                  R"({"epochs": 5, "stop_after_nan_steps": 100, "checkpoint": {"keep": 3}})",
                  R"({"steps": 900, "stop_after_nan_steps": 0, "checkpoint": {"keep": 9}})"),
              IsEmpty());
  EXPECT_THAT(DescribeDifferences(R"({"epochs": 5, "data": {"epochs": 1}})",
                                  R"({"epochs": 6, "data": {"epochs": 2}})"),
              ElementsAre("$.data.epochs: 1 there, 2 now"));
}

TEST(DescribeDifferencesTest, AnotherStrategyIsAnotherJob) {
  EXPECT_THAT(DescribeDifferences(R"({"strategy": {"name": "async", "max_staleness": 4}})",
                                  R"({"strategy": {"name": "sync"}})"),
              ElementsAre("$.strategy.max_staleness: 4 there, absent now",
                          "$.strategy.name: \"async\" there, \"sync\" now"));
  EXPECT_THAT(DescribeDifferences(R"({"strategy": {"name": "async"}})", R"({"strategy":
                  {"name": "async", "learning_rate_by_staleness": true}})"),
              ElementsAre("$.strategy.learning_rate_by_staleness: absent there, true now"));
  EXPECT_THAT(DescribeDifferences(R"({"strategy": {"name": "sync", "gradients_per_update": 3}})",
                                  R"({"strategy": {"name": "sync", "gradients_per_update": 5}})"),
              ElementsAre("$.strategy.gradients_per_update: 3 there, 5 now"));
}

// What a job of an earlier Shoal does not say, is at the default that it had then.
TEST(DescribeDifferencesTest, AnOptionThatHasComeSinceIsNoDifference) {
  const std::string now = ParseResolvedJob(R"({"name": "a", "model": {}, "data": {"training":
      {"images": "/a", "labels": "/b"}}, "loss": "mse", "optimizer": "adam", "steps": 1})",
                                           "now")
                              ->ResolvedText();
  std::string there = now;
  const std::string option = "\"beta_1\":0.9,";
  ASSERT_NE(there.find(option), std::string::npos);
  there.erase(there.find(option), option.size());
  EXPECT_THAT(DescribeDifferences(there, now), IsEmpty());
  there = now;
  there.replace(there.find(option), option.size(), "\"beta_1\":0.8,");
  EXPECT_THAT(DescribeDifferences(there, now),
              ElementsAre("$.optimizer.config.beta_1: 0.8 there, 0.9 now"));
}

// Which columns there are without names, only who sees the table knows (worker/job/job_names.h).
TEST(DescribeDifferencesTest, ColumnsThatOnlyOneNamesAreADifference) {
  const std::string without = R"({"data": {"training": {"format": "csv", "path": "/a"}}})";
  const std::string turned =
      R"({"data": {"training": {"format": "csv", "path": "/a", "features": ["b", "a"]}}})";
  EXPECT_THAT(DescribeDifferences(without, turned),
              ElementsAre("$.data.training.features: absent there, [\"b\",\"a\"] now"));
  EXPECT_THAT(DescribeDifferences(turned, without),
              ElementsAre("$.data.training.features: [\"b\",\"a\"] there, absent now"));
}

// A run that took them by place can be told what they are called.
TEST(DescribeDifferencesTest, ColumnsOfTheTestSetThatOnlyOneNamesAreNone) {
  const std::string without = R"({"data": {"test": {"format": "csv", "path": "/a"}}})";
  const std::string named =
      R"({"data": {"test": {"format": "csv", "path": "/a", "features": ["b", "a"]}}})";
  const std::string turned =
      R"({"data": {"test": {"format": "csv", "path": "/a", "features": ["a", "b"]}}})";
  EXPECT_THAT(DescribeDifferences(without, named), IsEmpty());
  EXPECT_THAT(DescribeDifferences(named, without), IsEmpty());
  EXPECT_THAT(
      DescribeDifferences(named, turned),
      ElementsAre(HasSubstr("$.data.test.features[0]: "), HasSubstr("$.data.test.features[1]: ")));
  // What is no job is compared as it stands.
  const std::string odd = R"({"data": {"test": {"format": 3, "path": "/a", "features": ["a"]}}})";
  EXPECT_THAT(DescribeDifferences(odd, without), Contains(HasSubstr("$.data.test.format: ")));
}

// Who trains where the data are knows its classes, where the job file does not say them.
TEST(DescribeDifferencesTest, ClassesThatOnlyOneNamesAreNoDifference) {
  const std::string without = R"({"data": {"training": {"path": "/a"}}})";
  const std::string two = R"({"data": {"training": {"path": "/a", "class_names": ["a", "b"]}}})";
  EXPECT_THAT(DescribeDifferences(without, two), IsEmpty());
  EXPECT_THAT(DescribeDifferences(two, without), IsEmpty());
  // Without names, "cat" is 0.
  const std::string turned =
      R"({"data": {"training": {"path": "/a", "class_names": ["dog", "cat"]}}})";
  for (const auto& [there, now] : {std::pair(without, turned), {turned, without}}) {
    EXPECT_THAT(DescribeDifferences(there, now),
                ElementsAre(HasSubstr("$.data.training.class_names: ")));
  }
  EXPECT_THAT(DescribeDifferences(
                  two, R"({"data": {"training": {"path": "/a", "class_names": ["a", "c"]}}})"),
              ElementsAre("$.data.training.class_names[1]: \"b\" there, \"c\" now"));
}

TEST(DescribeDifferencesTest, ShowsNoMoreThanAPersonReads) {
  std::string there = "[0";
  std::string now = "[1";
  for (int i = 0; i < 100; ++i) {
    there += ", 0";
    now += ", 1";
  }
  const auto lines = DescribeDifferences(there + "]", now + "]");
  EXPECT_EQ(lines.size(), 31u);
  EXPECT_EQ(lines.back(), "and 71 more differences");
}

TEST(DescribeDifferencesTest, SaysWhichTextIsNotJson) {
  EXPECT_THAT(DescribeDifferences("{", "{}"), ElementsAre(HasSubstr("there: ")));
}

}  // namespace
}  // namespace shoal
