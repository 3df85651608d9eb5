#pragma once

#include "tests/simulation/random.h"
#include "tests/simulation/workload/workload.h"

namespace shoal {

// Adds faults to the workload, unsorted: at most 25, and none to one of eight. Most are while the
// job would run without faults, which takes the time `undisturbed`. Requires that the cluster, the
// job and `orderly` are drawn.
void DrawFaults(Random& random, Time undisturbed, Workload* workload);

}  // namespace shoal
