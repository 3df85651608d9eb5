#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

#include "absl/status/status.h"
#include "worker/compute/cuda/runtime/node_name.h"

namespace shoal::cuda {

// The status of a call; the text of the call begins with the function's name: "cudaMalloc of
// DepthwiseConv2D in the layer conv: out of memory (cudaErrorMemoryAllocation)". The only place
// that converts CUDA's errors. kResourceExhausted: out of memory. kUnavailable: this process has
// lost the device; no later call recovers it. kFailedPrecondition: the driver or the devices are
// unsuitable. kInternal: a bug in Shoal.
absl::Status ToStatus(cudaError_t error, std::string_view call, const NodeName& node = {});

// SHOAL_CUDA(cudaMalloc(&pointer, size)): the status of the call, with the function's name. A node
// may follow as a second argument.
#define SHOAL_CUDA(CALL, ...) ::shoal::cuda::ToStatus((CALL), #CALL __VA_OPT__(, ) __VA_ARGS__)

}  // namespace shoal::cuda
