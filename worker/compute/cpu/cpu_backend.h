#pragma once

#include <memory>

#include "worker/compute/backend/backend.h"

namespace shoal {

// A backend with oneDNN and OpenBLAS on OpenMP's threads. Images stay in oneDNN's blocked layouts
// between ops that can read them. They are reordered only before and after such ops.
std::unique_ptr<Backend> CreateCpuBackend();

}  // namespace shoal
