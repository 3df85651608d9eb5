#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "common/base/vectorized.h"

// Functions of one float for vector loops: no branches, no tables, no calls. Formulas and
// coefficients: S. L. Moshier, Cephes Mathematical Library 2.2, single precision (expf.c, logf.c,
// tanhf.c). Not-a-number stays, infinities give the limits. Error bounds are in units in the last
// place of the exact result; tests/worker/compute/cpu/vector_math_test.cc measures them.

namespace shoal::cpu {

// A multiple of the lanes of all vectors. Where loops begin and end at multiples of it (or at the
// end of a tensor), an element's bits do not depend on the cut into ranges. GCC may use other
// instructions for the last elements of a loop.
inline constexpr int64_t kVectorBlock = 64;

// `condition` ? a : b, with both computed. A branch would keep the compiler from using vectors.
SHOAL_INLINE float Select(bool condition, float a, float b) {
  const uint32_t mask = -static_cast<uint32_t>(condition);
  return std::bit_cast<float>((std::bit_cast<uint32_t>(a) & mask) |
                              (std::bit_cast<uint32_t>(b) & ~mask));
}

// `x` within [low, high]. Not-a-number stays.
SHOAL_INLINE float Within(float x, float low, float high) {
  return Select(x < low, low, Select(x > high, high, x));
}

// 2^exponent for exponents from -126 to 127.
SHOAL_INLINE float PowerOfTwo(int32_t exponent) {
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
}

// exp(x) = 2^exponent * (1 + rest), where |rest| is at most about 0.42. Requires |x| <= 104.
struct ExpParts {
  int32_t exponent;
  float rest;
};
SHOAL_INLINE ExpParts SplitExp(float x) {
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: the sum's last bits are an integer
  const float shifted = x * 1.44269504088896341f + kShift;
  const float n = shifted - kShift;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;  // x - n ln 2
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return {std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kShift), p * (r * r) + r};
}

// exp(x), within 2 units, denormal results too.
SHOAL_INLINE float Exp(float x) {
  // exp(-104) rounds to 0, and exp(89) is too large for a float.
  const ExpParts parts = SplitExp(Within(x, -104, 89));
  // Neither half of the exponent is too large or too small for a float.
  const int32_t half = parts.exponent >> 1;
  return (1 + parts.rest) * PowerOfTwo(half) * PowerOfTwo(parts.exponent - half);
}

// exp(x) - 1, within 2 units. Requires x <= 0.
SHOAL_INLINE float ExpMinusOne(float x) {
  const ExpParts parts = SplitExp(Select(x < -64, -64, x));
  const float power = PowerOfTwo(parts.exponent);
  return parts.rest * power + (power - 1);
}

// log(1 + x), within 2 units. Requires 0 <= x <= 1.
SHOAL_INLINE float LogOnePlus(float x) {
  // 1 + x = 2 (1 + f) above sqrt(2) - 1.
  const bool high = x > 0.414213562f;
  const float f = Select(high, (x - 1) * 0.5f, x);
  float p = 7.0376836292e-2f;
  p = p * f - 1.1514610310e-1f;
  p = p * f + 1.1676998740e-1f;
  p = p * f - 1.2420140846e-1f;
  p = p * f + 1.4249322787e-1f;
  p = p * f - 1.6668057665e-1f;
  p = p * f + 2.0000714765e-1f;
  p = p * f - 2.4999993993e-1f;
  p = p * f + 3.3333331174e-1f;
  p = p * f - 0.5f;
  const float log = (f * f) * p + f;
  return (log + Select(high, -2.12194440e-4f, 0)) + Select(high, 0.693359375f, 0);
}

// 1 / (1 + exp(-x)), within 3 units; below x = -88.7 the result is 0.
SHOAL_INLINE float Sigmoid(float x) { return 1 / (1 + Exp(-x)); }

// tanh(x) - x for |x| below kTanhIsSmall.
inline constexpr float kTanhIsSmall = 0.625f;
SHOAL_INLINE float SmallTanhRest(float x) {
  const float z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  return (x * z) * p;
}
// tanh(x) for other x.
SHOAL_INLINE float LargeTanh(float x) {
  return std::copysign(1 - 2 / (Exp(2 * std::abs(x)) + 1), x);
}

// tanh(x), within 2 units.
SHOAL_INLINE float Tanh(float x) {
  return Select(std::abs(x) < kTanhIsSmall, x + SmallTanhRest(x), LargeTanh(x));
}

// log(1 + exp(x)), within 3 units.
SHOAL_INLINE float Softplus(float x) { return Select(x > 0, x, 0) + LogOnePlus(Exp(-std::abs(x))); }

}  // namespace shoal::cpu
