#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/backend/backend.h"
#include "worker/compute/backend/numerics_options.h"
#include "worker/compute/program/gradient_reducer.h"

namespace shoal::cuda {

// Creates the backend on the GPU with this index; `numerics` applies to all of its parts. Errors
// are FindDevice's, or name the missing NVIDIA library. A build without CUDA always returns
// FindDevice's error.
absl::StatusOr<std::unique_ptr<Backend>> CreateCudaBackend(int index,
                                                           const NumericsOptions& numerics);

// Creates the object that adds up the gradients of the GPUs with these indices, by NCCL. The GPUs
// are its ranks. Null, with a line in the log, if NCCL is missing or does not connect them.
std::unique_ptr<GradientReducer> CreateNcclReducer(const std::vector<int>& indices);

// Loads NVIDIA's libraries that the backend may need. kFailedPrecondition, with the remedy, if one
// cannot be loaded.
absl::Status CheckLibraries();

}  // namespace shoal::cuda
