#pragma once

#include <cstdint>
#include <vector>

#include "ps/store/applied_set.h"

namespace shoal {

// Returns the steps that the set contains from its base on, ascending.
inline std::vector<uint64_t> StepsAfterBase(const AppliedSet& set) {
  std::vector<uint64_t> steps;
  for (uint64_t step = set.base(); step < set.end(); ++step) {
    if (set.Contains(step)) steps.push_back(step);
  }
  return steps;
}

// Returns how many steps the set contains.
inline uint64_t CountSteps(const AppliedSet& set) {
  uint64_t count = set.base();
  for (uint64_t step = set.base(); step < set.end(); ++step) count += set.Contains(step);
  return count;
}

}  // namespace shoal
