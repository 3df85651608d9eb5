#pragma once

#include <memory>

#include "worker/compute/cuda/cuda_program.h"
#include "worker/compute/device/device_move_kernels.h"

namespace shoal::cuda {

// Copies, zeros, sums of parts and floats of bytes by kernels. `stream` as in ComputeTarget; it
// outlives what they run in.
std::unique_ptr<DeviceMoveKernels> CreateMoves(const Stream* stream);

}  // namespace shoal::cuda
