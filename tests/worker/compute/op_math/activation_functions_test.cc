// Activations of numbers that are not finite, huge or zero. The expected numbers are JAX's, of
// keras.activations and jax.grad. Rows where Keras gives not-a-number, or loses one, are left out.

#include "worker/compute/op_math/activation_functions.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/worker/compute/expect_near.h"

namespace shoal {
namespace {

constexpr float kHuge = 1e30f;

using Activated = ActivationAttributes::Kind;

struct ActivationCase {
  ActivationAttributes attributes;
  float x;
  float y;
  float derivative;
};

template <typename Scalar>
void ExpectNearKeras(const ActivationCase& test_case) {
  const Scalar x = test_case.x, y = Activate(test_case.attributes, x);
  const Scalar derivative = ActivationDerivative(test_case.attributes, x, y);
  const auto near = [](Scalar actual, float expected) {
    return actual == expected || (std::isfinite(expected) &&
                                  std::abs(actual - expected) <= 1e-5 * std::abs(expected) + 1e-6);
  };
  EXPECT_TRUE(near(y, test_case.y)) << "f(" << x << ") = " << y << ", not " << test_case.y;
  EXPECT_TRUE(near(derivative, test_case.derivative))
      << "f'(" << x << ") = " << derivative << ", not " << test_case.derivative;
}

TEST(ActivationFunctionsTest, EqualKerasWhereItHasAValue) {
  const ActivationAttributes relu = {}, relu6 = {.max_value = 6}, above_1 = {.threshold = 1};
  const ActivationAttributes sloped = {.max_value = 1, .negative_slope = 0.2, .threshold = 0.3};
  const ActivationAttributes leaky = {.kind = Activated::kLeakyRelu, .negative_slope = 0.2};
  const ActivationAttributes elu = {.kind = Activated::kElu, .negative_slope = 1};
  const ActivationCase cases[] = {
      {relu, INFINITY, INFINITY, 1},
      {relu, -INFINITY, 0, 0},
      {relu, kHuge, kHuge, 1},
      {relu, -kHuge, 0, 0},
      {relu, 0.0f, 0, 0},
      {relu, -0.0f, 0, 0},
      {relu6, INFINITY, 6, 0},
      {relu6, -INFINITY, 0, 0},
      {above_1, INFINITY, INFINITY, 1},
      {above_1, -INFINITY, 0, 0},
      {sloped, INFINITY, 1, 0},
      {sloped, -INFINITY, -INFINITY, 0.2f},
      {leaky, INFINITY, INFINITY, 1},
      {leaky, -INFINITY, -INFINITY, 0.2f},
      {{.kind = Activated::kTanh}, INFINITY, 1, 0},
      {{.kind = Activated::kTanh}, -INFINITY, -1, 0},
      {{.kind = Activated::kSigmoid}, INFINITY, 1, 0},
      {{.kind = Activated::kSigmoid}, -INFINITY, 0, 0},
      {elu, INFINITY, INFINITY, 1},
      {elu, -INFINITY, -1, 0},
      {{.kind = Activated::kSelu}, INFINITY, INFINITY, 1.0507010f},
      {{.kind = Activated::kSelu}, -INFINITY, -1.7580993f, 0},
      {{.kind = Activated::kSoftplus}, INFINITY, INFINITY, 1},
      {{.kind = Activated::kSoftplus}, -INFINITY, 0, 0},
      {{.kind = Activated::kSoftsign}, kHuge, 1, 0},
      {{.kind = Activated::kSoftsign}, -kHuge, -1, 0},
      {{.kind = Activated::kSilu}, kHuge, kHuge, 1},
      {{.kind = Activated::kSilu}, -kHuge, 0, 0},
      {{.kind = Activated::kGelu}, kHuge, kHuge, 1},
      {{.kind = Activated::kGelu}, -kHuge, 0, 0},
      {{.kind = Activated::kExponential}, INFINITY, INFINITY, INFINITY},
      {{.kind = Activated::kExponential}, -INFINITY, 0, 0},
      {{.kind = Activated::kHardSigmoid}, INFINITY, 1, 0},
      {{.kind = Activated::kHardSigmoid}, -INFINITY, 0, 0},
      {{.kind = Activated::kHardSilu}, INFINITY, INFINITY, 1},
      {{.kind = Activated::kHardSilu}, -kHuge, 0, 0},
      {{.kind = Activated::kHardTanh}, INFINITY, 1, 0},
      {{.kind = Activated::kHardTanh}, -INFINITY, -1, 0},
      {{.kind = Activated::kHardShrink}, -INFINITY, -INFINITY, 1},
      {{.kind = Activated::kSoftShrink}, -INFINITY, -INFINITY, 1},
      {{.kind = Activated::kTanhShrink}, INFINITY, INFINITY, 1},
      {{.kind = Activated::kTanhShrink}, -INFINITY, -INFINITY, 1},
      {{.kind = Activated::kTanhShrink}, kHuge, kHuge, 1},
      {{.kind = Activated::kTanhShrink}, 100, 99, 1},
      {{.kind = Activated::kLogSigmoid}, INFINITY, 0, 0},
      {{.kind = Activated::kLogSigmoid}, -INFINITY, -INFINITY, 1},
      {{.kind = Activated::kMish}, kHuge, kHuge, 1},
      {{.kind = Activated::kMish}, -kHuge, 0, 0},
      {{.kind = Activated::kSquareplus}, 100, 100.01f, 0.9999f},
      {{.kind = Activated::kSparsePlus}, kHuge, kHuge, 1},
      {{.kind = Activated::kSparsePlus}, -kHuge, 0, 0},
  };
  for (const ActivationCase& test_case : cases) {
    SCOPED_TRACE(static_cast<int>(test_case.attributes.kind));
    ExpectNearKeras<float>(test_case);
    ExpectNearKeras<double>(test_case);
  }
}

// Otherwise a ruined model would not show.
TEST(ActivationFunctionsTest, KeepNotANumber) {
  for (int kind = 0; kind <= static_cast<int>(Activated::kSparsePlus); ++kind) {
    for (const double slope : {0.0, 0.2}) {
      const ActivationAttributes attributes = {.kind = static_cast<Activated>(kind),
                                               .negative_slope = slope};
      EXPECT_TRUE(std::isnan(Activate(attributes, kNan))) << kind << ", slope " << slope;
    }
  }
}

}  // namespace
}  // namespace shoal
