#include "common/daemon/process/process_mark.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/text/printable.h"
#include "common/daemon/process/process_stat.h"

namespace shoal {
namespace {

// Returns "BOOT NAMESPACE" of this process; empty if /proc lacks them.
std::string Surroundings() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::error_code error;
  const std::filesystem::path ids = std::filesystem::read_symlink("/proc/self/ns/pid", error);
  return boot.empty() || error ? "" : absl::StrCat(boot, " ", ids.string());
}

}  // namespace

std::string HostName() {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  return Printable(host, sizeof(host));
}

std::string ProcessMark() {
  const std::string surroundings = Surroundings();
  const std::optional<ProcessStat> self = ReadProcessStat("self");
  if (surroundings.empty() || !self.has_value()) return "";
  return absl::StrCat(surroundings, " ", getpid(), " ", self->start_ticks);
}

bool IsProcessGone(const std::string& mark) {
  const std::vector<std::string> parts = absl::StrSplit(mark, ' ');
  int pid = 0;
  if (parts.size() != 4 || !absl::SimpleAtoi(parts[2], &pid) || pid <= 0) return false;
  if (absl::StrCat(parts[0], " ", parts[1]) != Surroundings()) return false;
  const std::optional<ProcessStat> there = ReadProcessStat(parts[2]);
  if (!there.has_value()) return kill(pid, 0) != 0 && errno == ESRCH;
  const bool ended = there->state == 'Z' || there->state == 'X';
  return ended || absl::StrCat(there->start_ticks) != parts[3];
}

}  // namespace shoal
