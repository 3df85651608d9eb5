#pragma once

#include <memory>

#include "worker/compute/backend/backend.h"
#include "worker/compute/program/program_builder.h"

namespace shoal {

// Plain loops in double on one thread, over row-major tensors of float32. Tests compare the other
// backends with it.
std::unique_ptr<Backend> CreateReferenceBackend();

// Whether the reference has a kernel for the node.
bool ReferenceSupports(const Node& node);
// Adds the steps of all of builder.plan().nodes() with those kernels: for another backend, if they
// can compute in the memory of its device.
void AddReferenceSteps(ProgramBuilder& builder);

}  // namespace shoal
