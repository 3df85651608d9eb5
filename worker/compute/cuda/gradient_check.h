#pragma once

#include "worker/compute/cuda/program/cuda_program_builder.h"

namespace shoal::cuda {

// Appends, after the steps of all nodes, the steps that divide the gradients by the training
// graph's loss scale and check whether they are finite (ProgramBuilder::SetGradientCheck). No
// gradient leaves the device before.
void AddGradientCheck(CudaProgramBuilder& program);

}  // namespace shoal::cuda
