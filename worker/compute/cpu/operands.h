#pragma once

#include <cstdint>
#include <vector>

#include "worker/compute/cpu/cpu_program_builder.h"

namespace shoal::cpu {

// Tensors of one layout and type: the inputs of an elementwise op, then its output.
struct Operands {
  std::vector<TensorId> tensors;
  dnnl::memory::desc desc;
  int64_t count = 0;  // elements, padding included
};

// Brings the inputs into the layout of the first one that is not row-major, as elements of `type`.
// `zeros_stay` states whether the op maps zeros to zero, because the padding of a layout must be
// zero. Other ops run in row-major order if there is padding. So do those whose output is pushed
// for a variable.
Operands AlignOperands(const std::vector<ValueId>& inputs, ValueId output, bool zeros_stay,
                       ComputeDtype type, CpuProgramBuilder& program);

}  // namespace shoal::cpu
