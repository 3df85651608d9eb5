#pragma once

#include <cstdint>
#include <vector>

#include "common/model/model_layout.h"

namespace shoal {

// Variables whose values or gradients are copied between the host and a device together.
struct Transfer {
  // A piece of the buffer that ModelLayout describes, without gaps.
  struct Range {
    int64_t offset_bytes = 0;
    int64_t size_bytes = 0;
    bool operator==(const Range&) const = default;
  };
  std::vector<int> variables;  // in the order in which they were given
  std::vector<Range> ranges;   // by offset
  int first_step = 0;          // of those of its variables
  int last_step = 0;
};

// A variable and the step of a program before which its value must be there, or after which its
// gradient is complete.
struct VariableAtStep {
  int variable = -1;
  int step = 0;
};

// Cuts `variables`, which come in the order of their steps, into transfers of at least
// `least_bytes`, but for the last and those before a variable that is itself so large: copies of
// few bytes cost as much as larger ones, but a step that reads a small variable is not to wait for
// a large one.
std::vector<Transfer> PlanTransfers(const std::vector<VariableAtStep>& variables,
                                    const ModelLayout& layout, int64_t least_bytes);

}  // namespace shoal
