#pragma once

namespace shoal {

// The cores that this thread may run on, at least 1: those of its affinity, as `taskset`, a cpuset
// of a container or NUMA pinning leave them, not all of the machine's.
int UsableCores();

}  // namespace shoal
