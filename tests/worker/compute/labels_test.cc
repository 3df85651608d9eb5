#include "worker/compute/labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace shoal {
namespace {

using ::testing::HasSubstr;

TEST(CheckLabelsTest, NamesTheExampleAndTheLabel) {
  const auto check = [](std::vector<float> labels, int64_t examples) {
    return CheckLabels({.examples = examples, .target = labels}, 10);
  };
  EXPECT_TRUE(check({0, 9, 4}, 3).ok());
  for (const float bad : {-1.0f, 10.0f, 2.5f, NAN, INFINITY}) {
    const absl::Status status = check({0, bad, 4}, 3);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.ToString(), HasSubstr("example 1 "));
  }
  EXPECT_EQ(check({0, 0, 10, 0}, 2).message(),
            "example 1 of the batch has the label 10; the model has 10 outputs, one per class, so "
            "that a label must be a whole number from 0 to 9");
}

TEST(CheckLabelsTest, NamesTheFileAndTheIndexInIt) {
  const std::vector<float> labels = {0, 0, 1};
  const std::vector<uint64_t> indices = {7, 0, 59999};
  const absl::Status status = CheckLabels(
      {.examples = 3, .target = labels, .target_file = "/data/labels", .indices = indices}, 1);
  EXPECT_EQ(status.message(),
            "/data/labels: example 59999, counted from 0, has the label 1; the model has 1 output, "
            "one per class, so that a label must be a whole number from 0 to 0");
}

}  // namespace
}  // namespace shoal
