#pragma once

#include "worker/compute/cuda/kernels/column_sums.h"

namespace shoal::cuda {

// BiasBackwardOp: ColumnSumsKernel of these terms, then SumOfSlicesKernel<1>.
template <typename Element, int width>
struct BiasTerms {
  static constexpr int kSums = 1;
  static constexpr int kWidth = width;
  static constexpr int kAtOnce = 8;

  const Element* dy;

  struct Column {};
  SHOAL_HOST_DEVICE Column OfColumn(int32_t) const { return {}; }
  SHOAL_HOST_DEVICE RawPack<Element, width> Read(const Column&, int64_t, int64_t at) const {
    return LoadRaw<width>(dy + at);
  }
  SHOAL_HOST_DEVICE void Add(const Column&, const RawPack<Element, width>& values, int64_t, int64_t,
                             Pack<width> (&sums)[kSums]) const {
    const Pack<width> gradients = Unpack(values);
    for (int i = 0; i < width; ++i) sums[0][i] += gradients[i];
  }
};

}  // namespace shoal::cuda
