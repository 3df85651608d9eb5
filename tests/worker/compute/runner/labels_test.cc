#include "worker/compute/runner/labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/common/base/fails_with.h"
#include "tests/common/loss/loss_of.h"

namespace shoal {
namespace {

using ::testing::HasSubstr;

// Bad data, as among features, or a job that goes with other labels.
absl::StatusCode CodeFor(float label) {
  return std::isfinite(label) ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kOutOfRange;
}

TEST(CheckLabelsTest, NamesTheExampleAndTheLabel) {
  const auto check = [](std::vector<float> labels, int64_t examples) {
    return CheckLabels({.examples = examples, .target = labels},
                       *LossOf("SparseCategoricalCrossentropy"), 10);
  };
  EXPECT_TRUE(check({0, 9, 4}, 3).ok());
  for (const float bad : {-1.0f, 10.0f, 2.5f, NAN, INFINITY}) {
    const absl::Status status = check({0, bad, 4}, 3);
    EXPECT_EQ(status.code(), CodeFor(bad));
    EXPECT_THAT(status.ToString(), HasSubstr("example 1 "));
  }
  EXPECT_THAT(check({0, 0, 10, 0}, 2),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        {"example 1 ", "label 10;", "10 outputs", "0 to 9"}));
}

TEST(CheckLabelsTest, NamesTheFileAndTheIndexInIt) {
  const std::vector<float> labels = {0, 0, 1};
  const std::vector<uint64_t> indices = {7, 0, 59999};
  const absl::Status status = CheckLabels(
      {.examples = 3, .target = labels, .target_file = "/data/labels", .indices = indices},
      *LossOf("SparseCategoricalCrossentropy"), 1);
  EXPECT_THAT(status,
              FailsWith(absl::StatusCode::kInvalidArgument,
                        {"/data/labels: example 59999,", "label 1;", "1 output,", "0 to 0"}));
}

// Of the class number 4 their loss would fall below zero, without end.
TEST(CheckLabelsTest, BinaryLossesTakeProbabilities) {
  const std::vector<uint64_t> indices = {7, 8};
  const auto check = [&](const char* loss, std::vector<float> labels) {
    return CheckLabels(
        {.examples = 2, .target = labels, .target_file = "flowers", .indices = indices},
        *LossOf(loss), 2);
  };
  for (const char* loss : {"BinaryCrossentropy", "BinaryFocalCrossentropy"}) {
    EXPECT_TRUE(check(loss, {0, 1, 0.25, 0}).ok());
    for (const float bad : {-1.0f, 2.0f, 1.5f, NAN, INFINITY}) {
      const absl::Status status = check(loss, {0, 1, 0, bad});
      EXPECT_EQ(status.code(), CodeFor(bad)) << loss << " " << bad;
      EXPECT_THAT(std::string(status.message()), HasSubstr("flowers: example 8,"));
    }
  }
  EXPECT_THAT(check("BinaryCrossentropy", {0, 0, 0, 4}),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        {"flowers: example 8,", "label 4;", "BinaryCrossentropy",
                         "sparse_categorical_crossentropy"}));
  EXPECT_THAT(std::string(check("BinaryCrossentropy", {0, 0, 0, 1.0000001f}).message()),
              HasSubstr("1.00000012"));
  for (const char* loss : {"Hinge", "SquaredHinge", "Huber", "MeanSquaredError", "Poisson"}) {
    EXPECT_TRUE(check(loss, {-1, 1, 7.5, 0}).ok());
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      EXPECT_THAT(std::string(check(loss, {0, 0, bad, 1}).message()),
                  HasSubstr("flowers: example 8,"));
    }
  }
}

}  // namespace
}  // namespace shoal
