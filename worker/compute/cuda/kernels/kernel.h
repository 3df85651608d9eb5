#pragma once

#include <concepts>
#include <cstdint>

#include "worker/compute/host_device.h"

// Kernels are structs of pointers and extents whose bodies run on a device and, for tests, on the
// CPU. There are two forms. Neither has atomics, nor an order of blocks, so that all results are
// the same bits each time.
//
// Launch (launch.h) runs them on a device, RunOnCpu (run_on_cpu.h) on the host.

namespace shoal::cuda {

// One thread an item, the items independent of each other. Consecutive items are consecutive in
// memory, which is what makes accesses of a warp one. Items are 32-bit numbers: dividing 64-bit
// ones costs more than many a body.
template <typename Kernel>
concept ItemKernel = requires(const Kernel& kernel, int32_t item) {
  { kernel.items() } -> std::same_as<int64_t>;
  kernel(item);
};

// Where a thread is.
struct Place {
  int64_t block = 0;
  int thread = 0;
};

// Blocks of kThreads threads that work together: the body is cut at its barriers into kPhases
// phases. Within one, no thread reads what another of the block writes to Shared. Own is what a
// thread keeps from phase to phase. Both hold anything at first.
template <typename Kernel>
concept BlockKernel = requires(const Kernel& kernel, typename Kernel::Shared& shared,
                               typename Kernel::Own& own) {
  { Kernel::kThreads } -> std::convertible_to<int>;
  { Kernel::kPhases } -> std::convertible_to<int>;
  { kernel.blocks() } -> std::same_as<int64_t>;
  kernel.template Run<0>(Place{}, shared, own);
};

}  // namespace shoal::cuda
