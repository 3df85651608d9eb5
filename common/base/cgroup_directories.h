#pragma once

#include <string>
#include <vector>

namespace shoal {

// Returns the directories with this process's limits for `controller` ("memory", "cpu"): its own
// cgroup first, then those above it, of versions 2 and 1. Some may not exist: in a container the
// path may be the machine's. The container's cgroup is then the topmost. `root` is a prefix of
// every path that is read, for tests; the result omits it.
std::vector<std::string> CgroupDirectories(const std::string& controller, const std::string& root);

}  // namespace shoal
