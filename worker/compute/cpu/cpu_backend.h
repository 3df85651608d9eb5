#pragma once

#include <memory>

#include "worker/compute/backend.h"

namespace shoal {

// oneDNN and OpenBLAS on the threads of OpenMP. Images stay in oneDNN's blocked layouts between the
// ops that can read them, and are reordered at the edges only.
std::unique_ptr<Backend> CreateCpuBackend();

}  // namespace shoal
