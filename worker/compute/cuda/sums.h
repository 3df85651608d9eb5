#pragma once

#include "worker/compute/cuda/cuda_program.h"

namespace shoal::cuda {

// Adds the steps that add up the loss and the plan's metrics (ProgramBuilder::SetSums), where there
// is a loss and a kernel for each of these (RowScore); else none, and the host adds up. To be
// called when all nodes have their steps.
void AddSums(CudaProgram& program);

}  // namespace shoal::cuda
