#pragma once

#include <cstdint>

#include "tests/simulation/workload/workload.h"

namespace shoal {

// Draws the workload of a seed: the cluster, the job, and all faults in the order of their times.
Workload DrawWorkload(uint64_t seed);

}  // namespace shoal
