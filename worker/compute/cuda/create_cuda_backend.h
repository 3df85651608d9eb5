#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/backend.h"
#include "worker/compute/compute_freedoms.h"

namespace shoal::cuda {

// The backend on the GPU with this index: what computes there learns from here what it is free to.
// Errors are FindDevice's, or say which of NVIDIA's libraries is missing. In a build without CUDA
// there is that one error alone.
absl::StatusOr<std::unique_ptr<Backend>> CreateCudaBackend(int index,
                                                           const ComputeFreedoms& freedoms);

// kFailedPrecondition, with what to do, where one of NVIDIA's libraries that the backend may need
// cannot be loaded. Loads them.
absl::Status CheckLibraries();

}  // namespace shoal::cuda
