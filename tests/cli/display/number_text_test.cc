#include "cli/display/number_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace shoal {
namespace {

TEST(NumberTextTest, Durations) {
  EXPECT_EQ(FormatDuration(0), "0 s");
  EXPECT_EQ(FormatDuration(9.4), "9 s");
  EXPECT_EQ(FormatDuration(59.6), "1:00");
  EXPECT_EQ(FormatDuration(72), "1:12");
  EXPECT_EQ(FormatDuration(7384), "2:03:04");
  EXPECT_EQ(FormatDuration(-3), "0 s");
  EXPECT_EQ(FormatDuration(std::numeric_limits<double>::infinity()), "very long");
  EXPECT_EQ(FormatDuration(std::nan("")), "very long");
}

TEST(NumberTextTest, NumbersHaveFourDigitsOrMore) {
  EXPECT_EQ(FormatNumber(0), "0.0000");
  EXPECT_EQ(FormatNumber(0.31214), "0.3121");
  EXPECT_EQ(FormatNumber(12.3456), "12.346");
  EXPECT_EQ(FormatNumber(123.456), "123.46");
  EXPECT_EQ(FormatNumber(12345.67), "12345.7");
  EXPECT_EQ(FormatNumber(1.5e-5), "1.500e-05");
  EXPECT_EQ(FormatNumber(-2.5e7), "-2.500e+07");
  EXPECT_EQ(FormatNumber(std::nan("")), "nan");
  EXPECT_EQ(FormatNumber(-std::nan("")), "nan");
}

TEST(NumberTextTest, CountsHaveThousandsApart) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999.6), "1,000");
  EXPECT_EQ(FormatCount(-123456), "-123,456");
  EXPECT_EQ(FormatCount(1234567), "1,234,567");
  EXPECT_EQ(FormatCount(std::numeric_limits<double>::infinity()), "inf");
}

}  // namespace
}  // namespace shoal
