#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/cuda/runtime/cuda_status.h"
#include "worker/compute/cuda/runtime/stream.h"

// For files that nvcc compiles.

namespace shoal::cuda {

inline constexpr int kItemThreads = 256;

template <ItemKernel Kernel>
__global__ void __launch_bounds__(kItemThreads) RunItems(const Kernel kernel, int64_t items) {
  const int64_t item = int64_t{blockIdx.x} * kItemThreads + threadIdx.x;
  if (item < items) kernel(static_cast<int32_t>(item));
}

template <int phase, BlockKernel Kernel>
__device__ void RunPhases(const Kernel& kernel, const ThreadPosition& place,
                          typename Kernel::Shared& shared, typename Kernel::ThreadState& own) {
  kernel.template Run<phase>(place, shared, own);
  if constexpr (phase + 1 < Kernel::kPhases) {
    __syncthreads();
    RunPhases<phase + 1>(kernel, place, shared, own);
  }
}

// The number of blocks that a multiprocessor must have room for, which limits the registers of a
// thread; 0: the compiler decides. (1 would allow more registers than it uses by default.)
template <BlockKernel Kernel>
constexpr int BlocksAtOnce() {
  if constexpr (requires { Kernel::kBlocksAtOnce; }) {
    return Kernel::kBlocksAtOnce;
  } else {
    return 0;
  }
}

template <BlockKernel Kernel>
__global__ void __launch_bounds__(Kernel::kThreads, BlocksAtOnce<Kernel>())
    RunBlocks(const Kernel kernel) {
  __shared__ typename Kernel::Shared shared;
  typename Kernel::ThreadState own;
  RunPhases<0>(kernel, {.block = blockIdx.x, .thread = static_cast<int>(threadIdx.x)}, shared, own);
}

// Submits `kernel` to `stream`; it runs later. An error is about the launch itself or about earlier
// work.
template <typename Kernel>
absl::Status Launch(const Kernel& kernel, const Stream& stream, const NodeName& node = {}) {
  int64_t blocks = 0;
  if constexpr (ItemKernel<Kernel>) {
    blocks = (kernel.items() + kItemThreads - 1) / kItemThreads;
    if (kernel.items() > INT32_MAX) {
      return absl::FailedPreconditionError(
          absl::StrCat(std::string(node.op), " in the layer ", std::string(node.layer), " has ",
                       kernel.items(), " items; a kernel takes at most ", INT32_MAX,
                       "; reduce \"micro_batch_size\" if they are not a variable's"));
    }
  } else {
    blocks = kernel.blocks();
  }
  if (blocks == 0) return absl::OkStatus();
  if constexpr (ItemKernel<Kernel>) {
    RunItems<<<static_cast<unsigned>(blocks), kItemThreads, 0, stream.get()>>>(kernel,
                                                                               kernel.items());
  } else {
    RunBlocks<<<static_cast<unsigned>(blocks), Kernel::kThreads, 0, stream.get()>>>(kernel);
  }
  return ToStatus(cudaGetLastError(), "cudaLaunchKernel", node);
}

}  // namespace shoal::cuda
