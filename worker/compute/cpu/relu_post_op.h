#pragma once

#include <dnnl.hpp>

#include "worker/compute/cpu/cpu_program.h"

namespace shoal::cpu {

// Appends the ReLU that the node at `index` computes as well, if any, to `attributes`, and returns
// the value that the node leaves then.
ValueId AppendRelu(int index, const CpuProgram& program, dnnl::primitive_attr* attributes);

}  // namespace shoal::cpu
