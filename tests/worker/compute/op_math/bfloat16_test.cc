#include "worker/compute/op_math/bfloat16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace shoal {
namespace {

float AsBFloat16(float value) { return ToFloat(FromFloat<BFloat16>(value)); }

// Eight bits of a number are kept: next to 1 there is 1 + 2^-7.
TEST(BFloat16Test, RoundsToTheNearest) {
  EXPECT_EQ(AsBFloat16(1), 1);
  EXPECT_EQ(AsBFloat16(-3.5f), -3.5f);
  EXPECT_EQ(AsBFloat16(1 + 0x1.1p-8f), 1 + 0x1p-7f);
  EXPECT_EQ(AsBFloat16(1 + 0x0.fp-8f), 1);
}

TEST(BFloat16Test, RoundsHalvesToEven) {
  EXPECT_EQ(AsBFloat16(1 + 0x1p-8f), 1);
  EXPECT_EQ(AsBFloat16(1 + 0x3p-8f), 1 + 0x2p-7f);
}

TEST(BFloat16Test, KeepsWhatIsNotFinite) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  EXPECT_EQ(AsBFloat16(kInfinite), kInfinite);
  EXPECT_EQ(AsBFloat16(-kInfinite), -kInfinite);
  EXPECT_EQ(AsBFloat16(std::numeric_limits<float>::max()), kInfinite);
  EXPECT_TRUE(std::isnan(AsBFloat16(std::nanf(""))));
}

}  // namespace
}  // namespace shoal
