#pragma once

#include <vector>

#include "worker/compute/plan/memory_plan.h"

namespace shoal {

// By tensor: the first and the last of the steps that touch it, in which it needs its memory; both
// -1 where none does. `touched` are the tensors of each step, in the order of the steps. Sizes are
// left alone.
std::vector<Lifetime> FindLifetimes(const std::vector<std::vector<int>>& touched, int tensors);

}  // namespace shoal
