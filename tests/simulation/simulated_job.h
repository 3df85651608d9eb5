#pragma once

#include "tests/simulation/expected_sums.h"
#include "tests/simulation/workload.h"

namespace shoal {

// A job of a simulation, and what its variables must be. Both outlive whoever is given one.
struct SimulatedJob {
  const Workload* workload = nullptr;
  const ExpectedSums* sums = nullptr;
};

}  // namespace shoal
