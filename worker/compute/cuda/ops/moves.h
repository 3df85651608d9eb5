#pragma once

#include <memory>

#include "worker/compute/cuda/program/cuda_program_builder.h"
#include "worker/compute/device/device_move_kernels.h"

namespace shoal::cuda {

// Kernels that copy, zero, add up parts and convert bytes to floats. `stream` is as in
// ComputeTarget and must outlive the result and its kernels.
std::unique_ptr<DeviceMoveKernels> CreateMoves(const Stream* stream);

}  // namespace shoal::cuda
