#include "worker/compute/op_math/float16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace shoal {
namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();

float AsFloat16(float value) { return ToFloat(FromFloat<Float16>(value)); }

// Eleven bits of a number are kept: next to 1 there is 1 + 2^-10.
TEST(Float16Test, RoundsToTheNearest) {
  EXPECT_EQ(AsFloat16(1), 1);
  EXPECT_EQ(AsFloat16(-3.5f), -3.5f);
  EXPECT_EQ(AsFloat16(1 + 0x1.1p-11f), 1 + 0x1p-10f);
  EXPECT_EQ(AsFloat16(1 + 0x0.fp-11f), 1);
  EXPECT_EQ(AsFloat16(2 - 0x1p-13f), 2) << "into the next power of two";
}

TEST(Float16Test, RoundsHalvesToEven) {
  EXPECT_EQ(AsFloat16(1 + 0x1p-11f), 1);
  EXPECT_EQ(AsFloat16(1 + 0x3p-11f), 1 + 0x2p-10f);
  EXPECT_EQ(AsFloat16(0x1p-25f), 0);
  EXPECT_EQ(AsFloat16(0x3p-25f), 0x2p-24f);
}

TEST(Float16Test, KeepsSmallNumbersWithFewerBits) {
  EXPECT_EQ(AsFloat16(0x1p-14f), 0x1p-14f);
  EXPECT_EQ(AsFloat16(0x1p-14f - 0x1p-25f), 0x1p-14f);
  EXPECT_EQ(AsFloat16(0x1p-14f - 0x1p-24f), 0x1p-14f - 0x1p-24f);
  EXPECT_EQ(AsFloat16(-0x1p-24f), -0x1p-24f);
  EXPECT_EQ(AsFloat16(0x1.8p-24f), 0x1p-23f);
  EXPECT_EQ(AsFloat16(1e-30f), 0);
  EXPECT_TRUE(std::signbit(AsFloat16(-1e-30f)));
}

TEST(Float16Test, IsInfiniteBeyondItsRange) {
  EXPECT_EQ(AsFloat16(65504), 65504);
  EXPECT_EQ(AsFloat16(65519.99f), 65504);
  EXPECT_EQ(AsFloat16(65520), kInfinite);
  EXPECT_EQ(AsFloat16(-1e30f), -kInfinite);
}

TEST(Float16Test, KeepsWhatIsNotFinite) {
  EXPECT_EQ(AsFloat16(kInfinite), kInfinite);
  EXPECT_EQ(AsFloat16(-kInfinite), -kInfinite);
  EXPECT_TRUE(std::isnan(AsFloat16(std::nanf(""))));
}

TEST(Float16Test, EveryOneComesBack) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const float value = ToFloat(Float16{static_cast<uint16_t>(bits)});
    if (std::isnan(value)) {
      EXPECT_TRUE((bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0) << bits;
    } else {
      EXPECT_EQ(FromFloat<Float16>(value).bits, bits);
    }
  }
}

}  // namespace
}  // namespace shoal
