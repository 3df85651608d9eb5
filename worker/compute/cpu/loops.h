#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

#include "common/base/vectorized.h"

// For loops without a oneDNN primitive: plain C++ that the compiler turns into vector code.

namespace shoal::cpu {

// Calls run(begin, end) for ranges that together cover [0, count). Uses at most as many threads as
// give each at least `grain` elements. Below that, waking a thread does not pay.
template <typename Run>
void ParallelFor(int64_t count, int64_t grain, const Run& run) {
  const int64_t threads =
      std::min<int64_t>(omp_get_max_threads(), count / std::max<int64_t>(grain, 1));
  if (threads <= 1) {
    run(int64_t{0}, count);
    return;
  }
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t thread = 0; thread < threads; ++thread) {
    run(count * thread / threads, count * (thread + 1) / threads);
  }
}

// The min number of elements for another thread in a memory-bound loop.
inline constexpr int64_t kElementGrain = 1 << 15;

}  // namespace shoal::cpu
