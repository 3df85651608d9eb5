#pragma once

#include "tests/simulation/expected_sums.h"
#include "tests/simulation/workload/workload.h"

namespace shoal {

// A job of a simulation and its expected sums. Both must outlive all users.
struct SimulatedJob {
  const Workload* workload = nullptr;
  const ExpectedSums* sums = nullptr;
};

}  // namespace shoal
