#include "common/monitoring/process_figures.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/version.h"
#include "common/daemon/logging.h"

namespace shoal {
namespace {

// What proc(5) calls the fields of /proc/self/stat, counted from the state, which is 3.
enum StatField { kUserTime = 14, kSystemTime = 15, kThreads = 20, kStartTime = 22, kPages = 24 };

std::string ReadProc(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Seconds since 1970 at which this machine was booted; 0 when that is not known.
double BootTime() {
  for (const auto& line : absl::StrSplit(ReadProc("/proc/stat"), '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    double seconds = 0;
    if (words[0] == "btime" && words.size() == 2 && absl::SimpleAtod(words[1], &seconds))
      return seconds;
  }
  return 0;
}

}  // namespace

void CollectProcessFigures(MetricSamples* out) {
  out->Add("shoal_build_info", 1, {kVersion});
  out->Add("shoal_log_lines_lost_total", static_cast<double>(LostLogLines()));
  const std::string stat = ReadProc("/proc/self/stat");
  const size_t name_end = stat.rfind(')');  // the program's name may hold anything
  if (name_end == std::string::npos || name_end + 2 >= stat.size()) return;
  const std::vector<std::string> fields = absl::StrSplit(stat.substr(name_end + 2), ' ');
  const auto field = [&fields](int number) {
    double value = 0;
    const size_t index = number - 3;
    return index < fields.size() && absl::SimpleAtod(fields[index], &value) ? value : 0;
  };
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  out->Add("process_cpu_seconds_total", (field(kUserTime) + field(kSystemTime)) / ticks);
  out->Add("process_threads", field(kThreads));
  out->Add("process_virtual_memory_bytes", field(kPages - 1));
  out->Add("process_resident_memory_bytes",
           field(kPages) * static_cast<double>(sysconf(_SC_PAGESIZE)));
  out->Add("process_start_time_seconds", BootTime() + field(kStartTime) / ticks);
  std::error_code error;
  int64_t open = -1;  // one is the listing itself
  std::filesystem::directory_iterator file("/proc/self/fd", error);
  for (; !error && file != std::filesystem::directory_iterator(); file.increment(error)) ++open;
  if (!error) out->Add("process_open_fds", static_cast<double>(open));
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
    out->Add("process_max_fds", static_cast<double>(limit.rlim_cur));
}

}  // namespace shoal
