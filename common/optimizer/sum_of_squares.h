#pragma once

#include <cstddef>

namespace shoal {

// Sums in double precision; the same values in the same order always give the same result.
double SumOfSquares(const float* values, size_t size);

}  // namespace shoal
