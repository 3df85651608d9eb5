#include "worker/compute/cpu/vector_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace shoal::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

// How far `computed` is from `exact`, in units in the last place of a float near `exact`. Infinity
// counts as the next number after the largest float.
double ErrorInUnits(float computed, double exact) {
  const double end = std::ldexp(1.0, 128);
  const double bounded = std::clamp(exact, -end, end);
  const double value = std::isinf(computed) ? std::copysign(end, computed) : double{computed};
  int exponent;
  std::frexp(bounded, &exponent);
  return std::abs(value - bounded) / std::ldexp(1.0, std::clamp(exponent - 1, -126, 127) - 23);
}

// Expects that `computed` has at most this error in [low, high], in a sample of all floats: every
// exponent and sign with some thousand numbers.
template <typename Computed, typename Exact>
void ExpectWithin(double units, float low, float high, const Computed& computed,
                  const Exact& exact) {
  constexpr uint64_t kStep = 2039;
  double largest = 0;
  float worst = 0;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += kStep) {
    const auto x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (!(x >= low && x <= high)) continue;
    const double error = ErrorInUnits(computed(x), exact(double{x}));
    if (error <= largest) continue;
    largest = error;
    worst = x;
  }
  EXPECT_LE(largest, units) << "at x = " << worst;
}

constexpr float kMax = std::numeric_limits<float>::max();

TEST(VectorMathTest, ExpIsWithinItsBound) {
  ExpectWithin(
      2, -kMax, kMax, [](float x) { return Exp(x); }, [](double x) { return std::exp(x); });
  EXPECT_EQ(Exp(0), 1);
  EXPECT_EQ(Exp(kInfinity), kInfinity);
  EXPECT_EQ(Exp(-kInfinity), 0);
  EXPECT_TRUE(std::isnan(Exp(kNotANumber)));
  EXPECT_TRUE(std::isnan(Exp(-kNotANumber)));
}

TEST(VectorMathTest, ExpMinusOneIsWithinItsBound) {
  ExpectWithin(
      2, -kMax, 0, [](float x) { return ExpMinusOne(x); }, [](double x) { return std::expm1(x); });
  EXPECT_EQ(ExpMinusOne(0), 0);
  EXPECT_EQ(ExpMinusOne(-kInfinity), -1);
  EXPECT_TRUE(std::isnan(ExpMinusOne(kNotANumber)));
}

TEST(VectorMathTest, LogOnePlusIsWithinItsBound) {
  ExpectWithin(
      2, 0, 1, [](float x) { return LogOnePlus(x); }, [](double x) { return std::log1p(x); });
  EXPECT_EQ(LogOnePlus(0), 0);
  EXPECT_TRUE(std::isnan(LogOnePlus(kNotANumber)));
}

TEST(VectorMathTest, SigmoidIsWithinItsBound) {
  ExpectWithin(
      3, -87, kMax, [](float x) { return Sigmoid(x); },
      [](double x) { return 1 / (1 + std::exp(-x)); });
  EXPECT_EQ(Sigmoid(kInfinity), 1);
  EXPECT_EQ(Sigmoid(-kInfinity), 0);
  EXPECT_TRUE(std::isnan(Sigmoid(kNotANumber)));
}

TEST(VectorMathTest, TanhIsWithinItsBound) {
  ExpectWithin(
      2, -kMax, kMax, [](float x) { return Tanh(x); }, [](double x) { return std::tanh(x); });
  EXPECT_EQ(Tanh(kInfinity), 1);
  EXPECT_EQ(Tanh(-kInfinity), -1);
  EXPECT_TRUE(std::isnan(Tanh(kNotANumber)));
}

TEST(VectorMathTest, SoftplusIsWithinItsBound) {
  ExpectWithin(
      3, -kMax, kMax, [](float x) { return Softplus(x); },
      [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); });
  EXPECT_EQ(Softplus(kInfinity), kInfinity);
  EXPECT_EQ(Softplus(-kInfinity), 0);
  EXPECT_TRUE(std::isnan(Softplus(kNotANumber)));
}

}  // namespace
}  // namespace shoal::cpu
