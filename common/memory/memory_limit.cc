#include "common/memory/memory_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/cgroup_directories.h"
#include "common/base/text/format_bytes.h"

namespace shoal {
namespace {

// Reads a number from a kernel file; none if the file is missing or contains "max".
std::optional<uint64_t> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  uint64_t number = 0;
  if (!(file >> text) || !absl::SimpleAtoi(text, &number)) return std::nullopt;
  return number;
}

// Returns the bytes in a line such as "MemTotal:  24689396 kB" of /proc/meminfo, or "VmRSS: …" of
// /proc/self/status.
std::optional<uint64_t> ReadKilobytes(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, key + ":")) continue;
    std::istringstream words(line.substr(key.size() + 1));
    uint64_t kilobytes = 0;
    if (words >> kilobytes) return kilobytes * 1024;
  }
  return std::nullopt;
}

// The memory of the machine, and the smallest limit below it.
class LoweredLimit {
 public:
  explicit LoweredLimit(const std::string& root) {
    machine_ = "the memory of this machine is unknown";
    if (const auto total = ReadKilobytes(root + "/proc/meminfo", "MemTotal")) {
      limit_.bytes = *total;
      machine_ = absl::StrCat("this machine has ", FormatBytes(*total));
    }
    limit_.text = machine_;
  }

  void Lower(uint64_t bytes, const std::string& by) {
    if (bytes >= limit_.bytes) return;
    limit_.bytes = bytes;
    limit_.text = absl::StrCat(machine_, ", of which ", by, " leaves ", FormatBytes(bytes));
  }

  void LowerToCgroup(const std::string& root) {
    for (const std::string& directory : CgroupDirectories("memory", root)) {
      for (const char* name : {"/memory.max", "/memory.limit_in_bytes"}) {
        const std::string file = directory + name;
        if (const auto bytes = ReadNumber(root + file)) Lower(*bytes, "the cgroup limit " + file);
      }
    }
  }

  const MemoryLimit& limit() const { return limit_; }

 private:
  std::string machine_;
  MemoryLimit limit_;
};

}  // namespace

MemoryLimit ReadMemoryLimit(const std::string& root) {
  LoweredLimit lowered(root);
  lowered.LowerToCgroup(root);
  for (const auto& [resource, name] :
       {std::pair(RLIMIT_AS, "the resource limit RLIMIT_AS (ulimit -v)"),
        std::pair(RLIMIT_DATA, "the resource limit RLIMIT_DATA (ulimit -d)")}) {
    rlimit value{};
    if (getrlimit(resource, &value) == 0 && value.rlim_cur != RLIM_INFINITY) {
      lowered.Lower(value.rlim_cur, name);
    }
  }
  return lowered.limit();
}

MemoryLimit ReadSharedMemoryLimit(const std::string& root) {
  LoweredLimit lowered(root);
  lowered.LowerToCgroup(root);
  return lowered.limit();
}

absl::Status CheckMemory(const MemoryNeeds& needs, const MemoryLimit& limit,
                         const std::string& advice) {
  if (needs.held_bytes() <= limit.bytes) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(needs.task, " needs ", needs.HeldText(),
                                                    " of memory; ", limit.text, ". ", advice));
}

std::string MayRunShort(const MemoryNeeds& needs, const MemoryLimit& limit) {
  if (needs.max_bytes() <= limit.bytes) return "";
  return absl::StrCat(needs.task, " may run short of memory: it needs ", needs.ToText(), "; ",
                      limit.text);
}

absl::Status OutOfMemory(const std::string& what) {
  const auto held = ReadKilobytes("/proc/self/status", "VmRSS");
  return absl::FailedPreconditionError(absl::StrCat("no memory for ", what, ": this process holds ",
                                                    FormatBytes(held.value_or(0)), "; ",
                                                    ReadMemoryLimit().text));
}

}  // namespace shoal
