#include "common/monitoring/process_stats.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/version.h"
#include "common/daemon/process/process_stat.h"
#include "common/log/logging.h"

namespace shoal {
namespace {

// The boot time of this machine in seconds since 1970; 0 if not known.
double BootTime() {
  std::ifstream stat("/proc/stat");
  for (std::string line; std::getline(stat, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    double seconds = 0;
    if (words[0] == "btime" && words.size() == 2 && absl::SimpleAtod(words[1], &seconds))
      return seconds;
  }
  return 0;
}

}  // namespace

void CollectProcessStats(MetricSamples* out) {
  out->Add("shoal_build_info", 1, {kVersion});
  out->Add("shoal_log_lines_lost_total", static_cast<double>(LostLogLines()));
  const std::optional<ProcessStat> stat = ReadProcessStat("self");
  if (!stat.has_value()) return;
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto seconds = [ticks](uint64_t count) { return static_cast<double>(count) / ticks; };
  out->Add("process_cpu_seconds_total", seconds(stat->user_ticks + stat->system_ticks));
  out->Add("process_threads", static_cast<double>(stat->threads));
  out->Add("process_virtual_memory_bytes", static_cast<double>(stat->virtual_bytes));
  out->Add("process_resident_memory_bytes",
           static_cast<double>(stat->resident_pages * sysconf(_SC_PAGESIZE)));
  out->Add("process_start_time_seconds", BootTime() + seconds(stat->start_ticks));
  std::error_code error;
  int64_t open = -1;  // do not count the listing itself
  std::filesystem::directory_iterator file("/proc/self/fd", error);
  for (; !error && file != std::filesystem::directory_iterator(); file.increment(error)) ++open;
  if (!error) out->Add("process_open_fds", static_cast<double>(open));
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
    out->Add("process_max_fds", static_cast<double>(limit.rlim_cur));
}

}  // namespace shoal
