#pragma once

#include <memory>

#include "worker/compute/backend.h"
#include "worker/compute/program_builder.h"

namespace shoal {

// Plain loops in double on one thread, over row-major tensors of float32: what the other backends
// are held against.
std::unique_ptr<Backend> CreateReferenceBackend();

// Adds the steps of all of builder.plan().nodes(), in those kernels: for another backend whose
// device they can compute in the memory of.
void AddReferenceSteps(ProgramBuilder& builder);

}  // namespace shoal
