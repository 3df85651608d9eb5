#pragma once

#include "worker/compute/cuda/cuda_program.h"

namespace shoal::cuda {

// Appends, behind the steps of all nodes, those that divide the gradients by the training graph's
// loss scale and find whether they are finite (ProgramBuilder::SetGradientCheck). None leaves
// before.
void AddGradientCheck(CudaProgram& program);

}  // namespace shoal::cuda
