#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>

namespace shoal {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

inline double Largest(std::span<const float> values) {
  double largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(double{value}));
  return largest;
}

// Expects |a - b| <= bound * max(largest |b|, least) for every element.
inline void ExpectNear(std::span<const float> actual, std::span<const float> expected, double bound,
                       double least, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size());
  const double largest = std::max(Largest(expected), least);
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], bound * largest) << what << "[" << i << "]";
  }
}

}  // namespace shoal
