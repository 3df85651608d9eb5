#pragma once

#include <string>

namespace shoal {

// The cores that this thread may use, at least 1: those of its affinity, as `taskset`, a cpuset of
// a container or NUMA pinning leave them, and no more than the CPU quota of its cgroup and of those
// above it, rounded up. Threads beyond a quota only have the kernel stop them all in every period.
// `root` stands before every path, for tests.
int UsableCores(const std::string& root = "");

// Says by which quota there are fewer than the affinity leaves; empty where none lowers them.
std::string CpuQuotaText(const std::string& root = "");

}  // namespace shoal
