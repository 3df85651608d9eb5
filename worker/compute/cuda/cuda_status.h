#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

#include "absl/status/status.h"
#include "worker/compute/cuda/node_name.h"

namespace shoal::cuda {

// The status of a call whose text begins with the function's name: "cudaMalloc of DepthwiseConv2D
// in the layer conv: out of memory (cudaErrorMemoryAllocation)". The only place where CUDA's errors
// become ours: kResourceExhausted where memory has run out, kUnavailable where the device is lost
// to this process, which no later call brings back, kFailedPrecondition for driver and devices as
// they were found, and kInternal for what only a mistake of ours makes.
absl::Status ToStatus(cudaError_t error, std::string_view call, const NodeName& node = {});

// SHOAL_CUDA(cudaMalloc(&pointer, size)): the call's status, with the function's name. A node may
// follow as a second argument.
#define SHOAL_CUDA(CALL, ...) ::shoal::cuda::ToStatus((CALL), #CALL __VA_OPT__(, ) __VA_ARGS__)

}  // namespace shoal::cuda
