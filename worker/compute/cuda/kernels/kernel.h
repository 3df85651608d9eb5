#pragma once

#include <concepts>
#include <cstdint>

#include "worker/compute/op_math/host_device.h"

// Kernels are structs of pointers and extents whose bodies run on a device and, for tests, on the
// CPU. There are two forms. Both avoid atomics and dependencies on the order of blocks, so that all
// results have the same bits every time.
//
// Launch (launch.h) runs them on a device, RunOnCpu (run_on_cpu.h) on the host.

namespace shoal::cuda {

// One thread per item; the items are independent. Consecutive items are consecutive in memory, so
// that a warp's accesses become one. Items are 32-bit numbers: a 64-bit division costs more than
// many kernel bodies.
template <typename Kernel>
concept ItemKernel = requires(const Kernel& kernel, int32_t item) {
  { kernel.items() } -> std::same_as<int64_t>;
  kernel(item);
};

// The position of a thread.
struct ThreadPosition {
  int64_t block = 0;
  int thread = 0;
};

// Blocks of kThreads threads that work together. Barriers cut the body into kPhases phases. Within
// a phase, no thread reads values that another thread of the block writes to Shared. ThreadState
// holds a thread's values from phase to phase. Both start uninitialised.
template <typename Kernel>
concept BlockKernel = requires(const Kernel& kernel, typename Kernel::Shared& shared,
                               typename Kernel::ThreadState& own) {
  { Kernel::kThreads } -> std::convertible_to<int>;
  { Kernel::kPhases } -> std::convertible_to<int>;
  { kernel.blocks() } -> std::same_as<int64_t>;
  kernel.template Run<0>(ThreadPosition{}, shared, own);
};

}  // namespace shoal::cuda
