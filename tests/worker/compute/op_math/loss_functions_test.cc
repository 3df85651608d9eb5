#include "worker/compute/op_math/loss_functions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/worker/compute/expect_near.h"

namespace shoal {
namespace {

using CrossEntropy = LossAttributes::Kind;

double LossOfLogits(CrossEntropy kind, const std::vector<float>& logits,
                    const std::vector<float>& target) {
  const LossAttributes attributes = {.kind = kind, .from_logits = true};
  return LossRow<float>(attributes, static_cast<int64_t>(logits.size()))
      .Loss(logits.data(), target.data());
}

TEST(LossFunctionsTest, AnImpossibleClassThatIsNotTheTargetAdds0) {
  const std::vector<float> logits = {1, -INFINITY, 2};
  const double expected = std::log1p(std::exp(1));
  EXPECT_NEAR(LossOfLogits(CrossEntropy::kSparseCategoricalCrossentropy, logits, {0}), expected,
              1e-6);
  EXPECT_NEAR(LossOfLogits(CrossEntropy::kCategoricalCrossentropy, logits, {1, 0, 0}), expected,
              1e-6);
}

TEST(LossFunctionsTest, AnImpossibleTargetIsAnInfiniteLoss) {
  const std::vector<float> logits = {1, -INFINITY, 2};
  EXPECT_EQ(LossOfLogits(CrossEntropy::kSparseCategoricalCrossentropy, logits, {1}), INFINITY);
  EXPECT_EQ(LossOfLogits(CrossEntropy::kCategoricalCrossentropy, logits, {0.5, 0.5, 0}), INFINITY);
}

TEST(LossFunctionsTest, ALogitThatIsNotANumberShows) {
  for (const float logit : {kNan, INFINITY}) {
    for (const float target : {0.0f, 1.0f, 2.0f}) {
      EXPECT_TRUE(std::isnan(LossOfLogits(CrossEntropy::kSparseCategoricalCrossentropy,
                                          {1, logit, -INFINITY}, {target})))
          << logit << ", target " << target;
    }
  }
}

TEST(LossFunctionsTest, ARowWithoutATargetShowsNotANumber) {
  const std::vector<float> none = {0, 0, 0};
  EXPECT_TRUE(
      std::isnan(LossOfLogits(CrossEntropy::kCategoricalCrossentropy, {1, kNan, -INFINITY}, none)));
  EXPECT_EQ(LossOfLogits(CrossEntropy::kCategoricalCrossentropy, {1, 2, -INFINITY}, none), 0);
}

TEST(LossFunctionsTest, TheGradientOfAnImpossibleClassIs0) {
  const LossAttributes attributes = {.kind = CrossEntropy::kSparseCategoricalCrossentropy,
                                     .from_logits = true};
  const std::vector<float> logits = {1, -INFINITY, 2};
  const float target = 0;
  std::vector<float> gradient(3);
  LossRow<float>(attributes, 3).Gradient(logits.data(), &target, 1, gradient.data());
  EXPECT_NEAR(gradient[0], -0.7310586f, 1e-6);
  EXPECT_EQ(gradient[1], 0);
  EXPECT_NEAR(gradient[2], 0.7310586f, 1e-6);
}

}  // namespace
}  // namespace shoal
