#pragma once

#include "worker/compute/plan/plan.h"

namespace shoal {

// The node that computes `value`, if `reader` is the first node to read it and the caller does not
// read it; else -1.
inline int FirstReadBy(const Plan& plan, int reader, ValueId value) {
  const std::vector<int>& consumers = plan.consumers(value);
  const bool is_first = !consumers.empty() && consumers.front() == reader;
  return is_first && !plan.wanted_outside(value) ? plan.producer(value) : -1;
}

}  // namespace shoal
