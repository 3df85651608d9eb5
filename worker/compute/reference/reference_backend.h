#pragma once

#include <memory>

#include "worker/compute/backend.h"

namespace shoal {

// Plain loops in float32 on one thread, over row-major tensors: what the other backends are held
// against.
std::unique_ptr<Backend> CreateReferenceBackend();

}  // namespace shoal
