#include "common/daemon/process_mark.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
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

// When a process began, in ticks since the start of the machine (proc(5), stat); empty when only
// what its parent has not waited for yet is there. Nothing where /proc does not say: there is none,
// or it is hidden (hidepid).
std::optional<std::string> StartOf(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string line;
  std::getline(file, line);
  // The name, in parentheses, may hold anything.
  const size_t end = line.rfind(')');
  if (end == std::string::npos) return std::nullopt;
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
  const std::string start = StartOf(pid).value_or("");
  return surroundings.empty() || start.empty() ? ""
                                               : absl::StrCat(surroundings, " ", pid, " ", start);
}

bool IsProcessGone(const std::string& mark) {
  const std::vector<std::string> parts = absl::StrSplit(mark, ' ');
  int pid = 0;
  if (parts.size() != 4 || !absl::SimpleAtoi(parts[2], &pid) || pid <= 0) return false;
  if (absl::StrCat(parts[0], " ", parts[1]) != Surroundings()) return false;
  const std::optional<std::string> start = StartOf(absl::StrCat(pid));
  return start.has_value() ? *start != parts[3] : kill(pid, 0) != 0 && errno == ESRCH;
}

}  // namespace shoal
