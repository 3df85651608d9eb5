#pragma once

#include <cstdint>
#include <type_traits>

#include "worker/compute/op_math/host_device.h"

namespace shoal::cuda {

// Short reductions along rows with `group` threads per row. They are neighbours in a block, so that
// they read neighbouring columns; thread `lane` has the columns lane, lane + group, ... Each thread
// writes its share to shared memory. After the barrier each adds up all shares of its row, in their
// order. These reads share an address, so they cost a warp a single read.
template <int group>
struct RowGroups {
  static constexpr int kThreads = 256;
  static_assert(kThreads % group == 0);
  static constexpr int kRows = kThreads / group;  // per block

  static int64_t Blocks(int64_t rows) { return (rows + kRows - 1) / kRows; }
  SHOAL_HOST_DEVICE static int64_t Row(int64_t block, int thread) {
    return block * kRows + thread / group;
  }
  SHOAL_HOST_DEVICE static int Lane(int thread) { return thread % group; }

  SHOAL_HOST_DEVICE static float Sum(const float (&shares)[kThreads], int thread) {
    float sum = 0;
    for (int i = 0; i < group; ++i) sum += shares[thread / group * group + i];
    return sum;
  }
  SHOAL_HOST_DEVICE static float Largest(const float (&shares)[kThreads], int thread) {
    float largest = shares[thread / group * group];
    for (int i = 1; i < group; ++i) {
      const float share = shares[thread / group * group + i];
      if (share > largest || share != share) largest = share;
    }
    return largest;
  }
};

// Calls use(group) with the number of threads for a row of `columns`, as a constant.
template <typename Use>
void WithGroup(int64_t columns, const Use& use) {
  if (columns > 64) {
    use(std::integral_constant<int, 32>());
  } else {
    use(std::integral_constant<int, 8>());
  }
}

}  // namespace shoal::cuda
