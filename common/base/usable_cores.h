#pragma once

#include <string>

namespace shoal {

// Returns the number of cores that this thread may use, at least 1: those of its affinity (taskset,
// cpuset, NUMA pinning), but at most the CPU quota of its cgroup and of those above it, rounded up.
// With more threads than the quota, the kernel stops all of them in every period. `root` is a
// prefix of every path, for tests.
int UsableCores(const std::string& root = "");

// Describes the CPU quota if it is below the cores of the affinity; else returns "".
std::string CpuQuotaText(const std::string& root = "");

}  // namespace shoal
