#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

// For the loops that oneDNN has no primitive for: plain C++ that the compiler turns into vector
// code.

// Before a function: compiled for several instruction sets, the best one is chosen when the program
// starts. Not under sanitizers, whose runtime is not there yet when the choice is made.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SHOAL_VECTORIZED \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SHOAL_VECTORIZED
#endif

namespace shoal::cpu {

// Calls run(begin, end) for ranges that make up [0, count), on all threads when there are enough
// for a thread to be worth its waking: at least `grain` each.
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

// Elements for which another thread is worth its waking in a loop bound by memory.
inline constexpr int64_t kElementGrain = 1 << 15;

}  // namespace shoal::cpu
