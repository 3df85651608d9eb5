#include "common/base/cgroup_directories.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace shoal {
namespace {

// Returns the mount point of the cgroups in a line of /proc/self/cgroup ("0::/path": version 2,
// "4:memory:/path": version 1). Empty if the line is not about `controller`.
std::string MountOf(const std::vector<std::string>& fields, const std::string& controller) {
  if (fields[1].empty()) return "/sys/fs/cgroup";
  const std::vector<std::string> controllers = absl::StrSplit(fields[1], ',');
  return std::ranges::count(controllers, controller) > 0 ? "/sys/fs/cgroup/" + controller : "";
}

}  // namespace

std::vector<std::string> CgroupDirectories(const std::string& controller, const std::string& root) {
  std::vector<std::string> directories;
  std::ifstream cgroups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(cgroups, line);) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3 || !absl::StartsWith(fields[2], "/")) continue;
    const std::string mount = MountOf(fields, controller);
    if (mount.empty()) continue;
    for (std::filesystem::path path = fields[2];; path = path.parent_path()) {
      directories.push_back(path.has_relative_path() ? mount + path.string() : mount);
      if (!path.has_relative_path()) break;
    }
  }
  return directories;
}

}  // namespace shoal
