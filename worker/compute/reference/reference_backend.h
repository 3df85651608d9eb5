#pragma once

#include <memory>

#include "worker/compute/backend.h"

namespace shoal {

// Plain loops in double on one thread, over row-major tensors of float32: what the other backends
// are held against.
std::unique_ptr<Backend> CreateReferenceBackend();

}  // namespace shoal
