#pragma once

#include <cstdint>
#include <vector>

#include "common/model/model_layout.h"

namespace shoal {

// Variables whose values or gradients are copied together between the host and a device.
struct Transfer {
  // A piece of the buffer that ModelLayout describes, without gaps.
  struct Range {
    int64_t offset_bytes = 0;
    int64_t size_bytes = 0;
    bool operator==(const Range&) const = default;
  };
  std::vector<int> variables;  // in the given order
  std::vector<Range> ranges;   // by offset
  int first_step = 0;          // the first step of its variables
  int last_step = 0;
};

// A variable and a step of a program. The step is the first to read the variable's value, or the
// last before its gradient is complete.
struct VariableAtStep {
  int variable = -1;
  int step = 0;
};

// Groups `variables`, given in the order of their steps, into transfers of at least `min_bytes`.
// Smaller are only the last transfer and one before a variable of at least that size. A copy of few
// bytes costs as much as a larger one, but a step that reads a small variable should not wait for a
// large one.
std::vector<Transfer> PlanTransfers(const std::vector<VariableAtStep>& variables,
                                    const ModelLayout& layout, int64_t min_bytes);

}  // namespace shoal
