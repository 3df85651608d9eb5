#include "common/daemon/process_mark.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace shoal {
namespace {

// "BOOT NAMESPACE" of this process; empty where /proc does not say.
std::string Surroundings() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::error_code error;
  const std::filesystem::path ids = std::filesystem::read_symlink("/proc/self/ns/pid", error);
  return boot.empty() || error ? "" : absl::StrCat(boot, " ", ids.string());
}

// When a process began, in ticks since the start of the machine (proc(5), stat); empty when there
// is none, or only what its parent has not waited for yet.
std::string StartOf(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string line;
  std::getline(file, line);
  // The name, in parentheses, may hold anything.
  const size_t end = line.rfind(')');
  if (end == std::string::npos) return "";
  const std::vector<std::string> fields =
      absl::StrSplit(absl::StripLeadingAsciiWhitespace(line.substr(end + 1)), ' ');
  constexpr size_t kState = 0, kStart = 19;  // fields 3 and 22
  if (fields.size() <= kStart || fields[kState] == "Z" || fields[kState] == "X") return "";
  return fields[kStart];
}

}  // namespace

std::string HostName() {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  return host;
}

std::string ProcessMark() {
  const std::string surroundings = Surroundings();
  const std::string pid = absl::StrCat(getpid());
  const std::string start = StartOf(pid);
  return surroundings.empty() || start.empty() ? ""
                                               : absl::StrCat(surroundings, " ", pid, " ", start);
}

bool IsProcessGone(const std::string& mark) {
  const std::vector<std::string> parts = absl::StrSplit(mark, ' ');
  int pid = 0;
  if (parts.size() != 4 || !absl::SimpleAtoi(parts[2], &pid) || pid <= 0) return false;
  if (absl::StrCat(parts[0], " ", parts[1]) != Surroundings()) return false;
  const std::string start = StartOf(absl::StrCat(pid));
  if (start == parts[3]) return false;
  // /proc may hide the processes of others.
  std::error_code ignored;
  const bool shown = std::filesystem::exists(absl::StrCat("/proc/", pid), ignored);
  return shown || (kill(pid, 0) != 0 && errno == ESRCH);
}

}  // namespace shoal
