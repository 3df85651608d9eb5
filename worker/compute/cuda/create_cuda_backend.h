#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/backend.h"
#include "worker/compute/compute_freedoms.h"
#include "worker/compute/device/gradient_sums.h"

namespace shoal::cuda {

// The backend on the GPU with this index: what computes there learns from here what it is free to.
// Errors are FindDevice's, or say which of NVIDIA's libraries is missing. In a build without CUDA
// there is that one error alone.
absl::StatusOr<std::unique_ptr<Backend>> CreateCudaBackend(int index,
                                                           const ComputeFreedoms& freedoms);

// What adds up the gradients of the GPUs with these indices, which are its ranks: NCCL. Null, with
// a line in the log, where NCCL is missing or does not connect them.
std::unique_ptr<GradientSums> CreateNcclSums(const std::vector<int>& indices);

// kFailedPrecondition, with what to do, where one of NVIDIA's libraries that the backend may need
// cannot be loaded. Loads them.
absl::Status CheckLibraries();

}  // namespace shoal::cuda
