#pragma once

#include "tests/simulation/random.h"
#include "tests/simulation/workload/workload.h"

namespace shoal {

// Adds faults to the workload, unsorted: at most 25, and none to one of eight. Most are while the
// job would run without faults, which takes the time `undisturbed`. Requires that the cluster, the
// job and `orderly` are drawn.
void DrawFaults(Random& random, Time undisturbed, Workload* workload);

// Replaces certificates in a sixth of the workloads, up to four times, of one task or of all. Other
// faults may strike the task at the same moment. Half of those without a change of the job have no
// other fault, and leases that do not expire. Requires all other draws.
void DrawNewCertificates(Random& random, Time undisturbed, Workload* workload);

}  // namespace shoal
