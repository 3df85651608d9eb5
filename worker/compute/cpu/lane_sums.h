#pragma once

#include <cstdint>

#include "common/base/vectorized.h"

namespace shoal::cpu {

struct TwoSums {
  double first = 0;
  double second = 0;
};

// Computes two sums over `count` elements, in double. `terms.Add(i, first, second)` adds the terms
// of element i. Element i belongs to lane i % kSumLanes, and the lanes are summed in order. So the
// result depends neither on the instruction set's vectors nor on addresses.
inline constexpr int kSumLanes = 16;
template <typename Terms>
SHOAL_INLINE TwoSums SumLanes(int64_t count, const Terms terms) {
  double first[kSumLanes] = {}, second[kSumLanes] = {};
  int64_t i = 0;
  for (; i + kSumLanes <= count; i += kSumLanes) {
#pragma omp simd
    for (int lane = 0; lane < kSumLanes; ++lane) terms.Add(i + lane, first[lane], second[lane]);
  }
  for (int lane = 0; i + lane < count; ++lane) terms.Add(i + lane, first[lane], second[lane]);
  TwoSums sums;
  for (int lane = 0; lane < kSumLanes; ++lane) {
    sums.first += first[lane];
    sums.second += second[lane];
  }
  return sums;
}

}  // namespace shoal::cpu
