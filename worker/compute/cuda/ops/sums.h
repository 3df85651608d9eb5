#pragma once

#include "worker/compute/cuda/program/cuda_program_builder.h"

namespace shoal::cuda {

// Adds the steps that add up the loss and the plan's metrics (ProgramBuilder::SetSums), if there is
// a loss and each metric has a kernel (RowScore). Otherwise adds nothing, and the host adds up.
// Call it after adding the steps of all nodes.
void AddSums(CudaProgramBuilder& program);

}  // namespace shoal::cuda
