#include "worker/compute/cpu/activation_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "worker/compute/cpu/vector_math.h"
#include "worker/compute/op_math/activation_functions.h"
#include "worker/compute/op_math/bfloat16.h"

namespace shoal::cpu {
namespace {

using Kind = ActivationAttributes::Kind;

class ActivationLoopsTest : public ::testing::TestWithParam<Kind> {
 protected:
  const ActivationAttributes attributes_ = {.kind = GetParam(), .threshold = 0.5, .slope = 0.2};
};

// Numbers of either sign and all sizes, both infinities and not-a-number; not a multiple of a
// vector's lanes.
std::vector<float> Samples() {
  std::vector<float> samples = {0, std::numeric_limits<float>::infinity(),
                                -std::numeric_limits<float>::infinity(),
                                std::numeric_limits<float>::quiet_NaN()};
  for (int i = 1; i < 2000; ++i) {
    const float size = static_cast<float>(std::pow(10, (i % 1000) / 100.0 - 7));
    samples.push_back(i % 2 == 0 ? size : -size);
  }
  return samples;
}

void ExpectLike(float computed, double expected, float x) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(computed)) << "of " << x;
  } else if (std::isinf(expected)) {
    EXPECT_EQ(computed, expected) << "of " << x;
  } else {
    EXPECT_NEAR(computed, expected, 1e-6 * (1 + std::abs(expected))) << "of " << x;
  }
}

TEST_P(ActivationLoopsTest, ComputeWhatTheFormulaSays) {
  const std::vector<float> x = Samples(), dy(x.size(), 1.5f);
  std::vector<float> y(x.size()), dx(x.size());
  const auto count = static_cast<int64_t>(x.size());
  ActivateLoop(attributes_, x.data(), count, y.data());
  ActivateBackwardLoop(attributes_, x.data(), y.data(), dy.data(), count, dx.data());
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = Activate<double>(attributes_, x[i]);
    // Terms as large as x are subtracted.
    const double scale = std::isfinite(x[i]) ? 1 + std::abs(double{x[i]}) : 1;
    ExpectLike(static_cast<float>(y[i] / scale), exact / scale, x[i]);
    const double derivative = ActivationDerivative<double>(attributes_, x[i], exact);
    ExpectLike(static_cast<float>(dx[i] / scale), 1.5 * derivative / scale, x[i]);
  }
}

TEST_P(ActivationLoopsTest, TheEndOfARangeChangesNoBit) {
  const std::vector<float> x = Samples(), dy(x.size(), 1.5f);
  std::vector<float> y(x.size()), dx(x.size());
  const auto count = static_cast<int64_t>(x.size());
  ActivateLoop(attributes_, x.data(), count, y.data());
  ActivateBackwardLoop(attributes_, x.data(), y.data(), dy.data(), count, dx.data());
  for (const int64_t blocks : {1, 3, 10}) {
    std::vector<float> part_y(x.size()), part_dx(x.size());
    const int64_t size = blocks * kVectorBlock;
    for (int64_t begin = 0; begin < count; begin += size) {
      const int64_t part = std::min(size, count - begin);
      ActivateLoop(attributes_, x.data() + begin, part, part_y.data() + begin);
      ActivateBackwardLoop(attributes_, x.data() + begin, y.data() + begin, dy.data() + begin, part,
                           part_dx.data() + begin);
    }
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_TRUE(part_y[i] == y[i] || std::isnan(y[i])) << "of " << x[i];
      EXPECT_TRUE(part_dx[i] == dx[i] || std::isnan(dx[i])) << "of " << x[i];
    }
  }
}

TEST_P(ActivationLoopsTest, Bfloat16IsTheRoundedFloat) {
  std::vector<BFloat16> x, dy;
  std::vector<float> float_x;
  for (const float sample : Samples()) {
    x.push_back(FromFloat<BFloat16>(sample));
    dy.push_back(FromFloat<BFloat16>(1.5f));
    float_x.push_back(ToFloat(x.back()));
  }
  const auto count = static_cast<int64_t>(x.size());
  std::vector<BFloat16> y(x.size()), dx(x.size());
  ActivateLoop(attributes_, x.data(), count, y.data());
  ActivateBackwardLoop(attributes_, x.data(), y.data(), dy.data(), count, dx.data());
  std::vector<float> float_y(x.size()), float_dx(x.size()), stored_y, float_dy(x.size(), 1.5f);
  ActivateLoop(attributes_, float_x.data(), count, float_y.data());
  for (const BFloat16 value : y) stored_y.push_back(ToFloat(value));
  ActivateBackwardLoop(attributes_, float_x.data(), stored_y.data(), float_dy.data(), count,
                       float_dx.data());
  // Half of the last of 8 bits, and of the least denormal number.
  const auto expect_rounded = [&](BFloat16 computed, float expected, float of) {
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(ToFloat(computed))) << "of " << of;
    } else if (std::isinf(expected)) {
      EXPECT_EQ(ToFloat(computed), expected) << "of " << of;
    } else {
      EXPECT_NEAR(ToFloat(computed), expected, 0x1.01p-8 * std::abs(expected) + 0x1p-133)
          << "of " << of;
    }
  };
  for (size_t i = 0; i < x.size(); ++i) {
    expect_rounded(y[i], float_y[i], float_x[i]);
    expect_rounded(dx[i], float_dx[i], float_x[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ActivationLoopsTest,
                         ::testing::Values(Kind::kSelu, Kind::kSoftsign, Kind::kHardSigmoid,
                                           Kind::kHardSilu, Kind::kHardTanh, Kind::kHardShrink,
                                           Kind::kSoftShrink, Kind::kTanhShrink, Kind::kLogSigmoid,
                                           Kind::kMish, Kind::kSquareplus, Kind::kSparsePlus));

}  // namespace
}  // namespace shoal::cpu
