#pragma once

#include "worker/compute/cuda/kernels/column_sums.h"

namespace shoal::cuda {

// BiasBackwardOp: ColumnSumsKernel of these, then SumOfSlicesKernel<1>.
template <typename Element, int width>
struct BiasTerms {
  static constexpr int kSums = 1;
  static constexpr int kWidth = width;

  const Element* dy;
  int64_t columns;

  SHOAL_HOST_DEVICE void Add(int64_t row, int64_t column, Pack<width> (&sums)[kSums]) const {
    const Pack<width> gradients = Load<width>(dy + row * columns + column);
    for (int i = 0; i < width; ++i) sums[0][i] += gradients[i];
  }
};

}  // namespace shoal::cuda
