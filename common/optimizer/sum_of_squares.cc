#include "common/optimizer/sum_of_squares.h"

#include "common/optimizer/vectorize.h"

namespace shoal {

// Uses as many sums as fit into a vector register.
SHOAL_VECTORIZED
double SumOfSquares(const float* values, size_t size) {
  constexpr size_t kSums = 16;
  double sums[kSums] = {};
  size_t i = 0;
  for (; i + kSums <= size; i += kSums) {
    for (size_t k = 0; k < kSums; ++k) sums[k] += double{values[i + k]} * values[i + k];
  }
  for (size_t k = 0; i < size; ++i, ++k) sums[k] += double{values[i]} * values[i];
  double sum = 0;
  for (const double each : sums) sum += each;
  return sum;
}

}  // namespace shoal
