#pragma once

#include <cstdint>
#include <memory>

#include "worker/compute/cuda/cuda_program.h"

namespace shoal::cuda {

// Copies and zeros by kernels. `stream` as in ComputeTarget; it outlives what they run in.
std::unique_ptr<MoveKernels> CreateMoves(const Stream* stream);

// `count` bytes as as many floats: (from, to). `stream` likewise.
std::unique_ptr<Kernel> CreateFloatsOfBytes(const Stream* stream, int64_t count);

}  // namespace shoal::cuda
