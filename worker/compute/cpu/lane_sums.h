#pragma once

#include <cstdint>

#include "common/base/vectorized.h"

namespace shoal::cpu {

struct TwoSums {
  double first = 0;
  double second = 0;
};

inline constexpr int kSumLanes = 16;
SHOAL_INLINE double SumOfLanes(const double (&lanes)[kSumLanes]) {
  double quarters[4];
  for (int i = 0; i < 4; ++i) {
    quarters[i] = (lanes[i] + lanes[i + 4]) + (lanes[i + 8] + lanes[i + 12]);
  }
  return (quarters[0] + quarters[1]) + (quarters[2] + quarters[3]);
}

// Computes two sums over `count` elements, in double. `terms.Add(i, first, second)` adds the terms
// of element i. Element i of a long row belongs to lane i % kSumLanes. The lanes are summed in a
// fixed order. The result does not depend on the width of vectors or on addresses. It may depend on
// whether the instruction set multiplies and adds in one step.
template <typename Terms>
SHOAL_INLINE TwoSums SumLanes(int64_t count, const Terms terms) {
  TwoSums sums;
  if (count < kSumLanes) {
    for (int64_t i = 0; i < count; ++i) terms.Add(i, sums.first, sums.second);
    return sums;
  }
  double first[kSumLanes] = {}, second[kSumLanes] = {};
  int64_t i = 0;
  for (; i + kSumLanes <= count; i += kSumLanes) {
#pragma omp simd
    for (int lane = 0; lane < kSumLanes; ++lane) terms.Add(i + lane, first[lane], second[lane]);
  }
  for (int lane = 0; i + lane < count; ++lane) terms.Add(i + lane, first[lane], second[lane]);
  sums.first = SumOfLanes(first);
  sums.second = SumOfLanes(second);
  return sums;
}

}  // namespace shoal::cpu
