#include "common/base/usable_cores.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/cgroup_directories.h"

namespace shoal {
namespace {

int CoresOfAffinity() {
  cpu_set_t cores;
  // Fails on machines with more than 1024 cores, the size of the set.
  if (sched_getaffinity(0, sizeof(cores), &cores) == 0) return std::max(1, CPU_COUNT(&cores));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

struct Quota {
  double cores = std::numeric_limits<double>::infinity();
  std::string file;  // the quota's file
};

// Reads cpu.max ("50000 100000", "max 100000"), or the two files of version 1, where -1 means no
// quota.
Quota QuotaIn(const std::string& directory, const std::string& root) {
  double quota = 0, period = 0;
  if (std::ifstream(root + directory + "/cpu.max") >> quota >> period && quota > 0 && period > 0)
    return {quota / period, directory + "/cpu.max"};
  const std::string file = directory + "/cpu.cfs_quota_us";
  if (std::ifstream(root + file) >> quota && quota > 0 &&
      std::ifstream(root + directory + "/cpu.cfs_period_us") >> period && period > 0) {
    return {quota / period, file};
  }
  return {};
}

// Returns the smallest quota.
Quota ReadQuota(const std::string& root) {
  Quota least;
  for (const std::string& directory : CgroupDirectories("cpu", root)) {
    if (const Quota quota = QuotaIn(directory, root); quota.cores < least.cores) least = quota;
  }
  return least;
}

}  // namespace

int UsableCores(const std::string& root) {
  const double quota = std::ceil(ReadQuota(root).cores);
  return std::max(1, static_cast<int>(std::min<double>(CoresOfAffinity(), quota)));
}

std::string CpuQuotaText(const std::string& root) {
  const Quota quota = ReadQuota(root);
  const int cores = CoresOfAffinity();
  if (quota.cores >= cores) return "";
  return absl::StrCat("the CPU quota ", quota.file, " allows ", quota.cores, " of ", cores,
                      " cores; Shoal counts threads for ", UsableCores(root));
}

}  // namespace shoal
