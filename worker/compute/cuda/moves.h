#pragma once

#include <memory>

#include "worker/compute/cuda/cuda_program.h"

namespace shoal::cuda {

// Copies and zeros by kernels. `stream` as in ComputeTarget; it outlives what they run in.
std::unique_ptr<MoveKernels> CreateMoves(const Stream* stream);

}  // namespace shoal::cuda
