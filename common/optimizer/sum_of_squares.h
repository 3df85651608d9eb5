#pragma once

#include <cstddef>

namespace shoal {

// In double precision; the same for the same values in the same order.
double SumOfSquares(const float* values, size_t size);

}  // namespace shoal
