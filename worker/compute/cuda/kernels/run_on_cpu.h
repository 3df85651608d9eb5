#pragma once

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "worker/compute/cuda/kernels/kernel.h"

namespace shoal::cuda {

// Runs a whole grid on this thread. `random` draws the order of items, blocks and the threads of
// each phase, because a device promises no order. Shared memory starts as not-a-number.
template <ItemKernel Kernel, typename Random>
void RunOnCpu(const Kernel& kernel, Random& random) {
  std::vector<int32_t> items(kernel.items());
  std::iota(items.begin(), items.end(), 0);
  std::shuffle(items.begin(), items.end(), random);
  for (const int32_t item : items) kernel(item);
}

template <int phase, BlockKernel Kernel, typename Random>
void RunPhasesOnCpu(const Kernel& kernel, int64_t block, typename Kernel::Shared& shared,
                    std::vector<typename Kernel::ThreadState>& own, std::vector<int>& threads,
                    Random& random) {
  std::shuffle(threads.begin(), threads.end(), random);
  for (const int thread : threads) {
    kernel.template Run<phase>({.block = block, .thread = thread}, shared, own[thread]);
  }
  if constexpr (phase + 1 < Kernel::kPhases) {
    RunPhasesOnCpu<phase + 1>(kernel, block, shared, own, threads, random);
  }
}

template <BlockKernel Kernel, typename Random>
void RunOnCpu(const Kernel& kernel, Random& random) {
  std::vector<int64_t> blocks(kernel.blocks());
  std::iota(blocks.begin(), blocks.end(), 0);
  std::shuffle(blocks.begin(), blocks.end(), random);
  std::vector<int> threads(Kernel::kThreads);
  std::iota(threads.begin(), threads.end(), 0);
  for (const int64_t block : blocks) {
    typename Kernel::Shared shared;
    std::memset(&shared, 0xff, sizeof(shared));
    std::vector<typename Kernel::ThreadState> own(Kernel::kThreads);
    std::memset(static_cast<void*>(own.data()), 0xff, own.size() * sizeof(own[0]));
    RunPhasesOnCpu<0>(kernel, block, shared, own, threads, random);
  }
}

}  // namespace shoal::cuda
