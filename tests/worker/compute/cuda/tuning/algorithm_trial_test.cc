// Which ways of computing something agree, and which of those is taken.

#include "worker/compute/cuda/tuning/algorithm_trial.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace shoal::cuda {
namespace {

AlgorithmTrial Of(double time, std::vector<float> sample) {
  return {.time = time, .sample = std::move(sample), .tolerance = 0.01};
}

TEST(AlgorithmTrialTest, RoundingAloneMayTellSamplesApart) {
  EXPECT_TRUE(Agree(Of(1, {}), Of(2, {})));
  EXPECT_TRUE(Agree(Of(1, {100, 0.5f}), Of(2, {100.9f, -0.4f}))) << "in units of the largest";
  EXPECT_FALSE(Agree(Of(1, {100, 0.5f}), Of(2, {100, -0.6f})));
  EXPECT_FALSE(Agree(Of(1, {1}), Of(2, {1, 1})));
  EXPECT_TRUE(Agree(Of(1, {0, 0}), Of(2, {0, 0})));
}

// What a kernel has not written, or what has overflowed.
TEST(AlgorithmTrialTest, NotANumberIsTheSameAsNothing) {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(Agree(Of(1, {nan, 1}), Of(2, {nan, 1})));
  EXPECT_FALSE(Agree(Of(1, {nan, 1}), Of(2, {0, 1})));
  EXPECT_FALSE(Agree(Of(1, {infinity}), Of(2, {1})));
}

TEST(AlgorithmTrialTest, TheFastestOfTheLargestGroupIsTaken) {
  const std::vector<float> right = {1, 2, 3}, nearly = {1.01f, 2, 3}, wrong = {1, 2, 0},
                           other = {9, 9, 9};
  EXPECT_EQ(FastestAgreeing(std::vector{Of(5, right)}), 0u);
  EXPECT_EQ(FastestAgreeing(std::vector{Of(5, right), Of(4, right), Of(6, right)}), 1u);
  EXPECT_EQ(FastestAgreeing(
                std::vector{Of(1, wrong), Of(5, right), Of(2, other), Of(4, nearly), Of(6, right)}),
            3u);
  EXPECT_EQ(FastestAgreeing(std::vector{Of(2, right), Of(1, wrong)}), 0u) << "of two the first";
  EXPECT_EQ(FastestAgreeing(std::vector{Of(2, right), Of(2, right)}), 0u);
}

}  // namespace
}  // namespace shoal::cuda
