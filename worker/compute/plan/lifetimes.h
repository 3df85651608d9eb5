#pragma once

#include <vector>

#include "worker/compute/plan/memory_plan.h"

namespace shoal {

// Returns by tensor the first and the last step that touches it: it needs its memory in between.
// Both are -1 for an untouched tensor. `touched` has the tensors of each step, in step order.
// Leaves the sizes unset.
std::vector<Lifetime> FindLifetimes(const std::vector<std::vector<int>>& touched, int tensors);

}  // namespace shoal
