#pragma once

#include <string>
#include <vector>

namespace shoal {

// The directories of this process's cgroup and of those above it, own first, in which the kernel
// has the limits of `controller` ("memory", "cpu"): of version 2, and of version 1. Some may not be
// there: inside a container the path may be one that only the machine has; its own cgroup is then
// the topmost. `root` stands before every path that is read, for tests; it is not in the result.
std::vector<std::string> CgroupDirectories(const std::string& controller, const std::string& root);

}  // namespace shoal
