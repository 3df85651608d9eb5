#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace shoal {

// The state of a process from /proc/PID/stat (proc(5)).
struct ProcessStat {
  char state = 0;           // 'Z' or 'X': ended, but its parent has not waited for it
  uint64_t user_ticks = 0;  // CPU time; sysconf(_SC_CLK_TCK) ticks per second
  uint64_t system_ticks = 0;
  uint64_t threads = 0;
  uint64_t start_ticks = 0;  // since the machine started
  uint64_t virtual_bytes = 0;
  uint64_t resident_pages = 0;
};

// Reads the state of the process with this id; "self" for this one. Returns nullopt if /proc lacks
// it: it does not exist, or it is hidden (hidepid).
std::optional<ProcessStat> ReadProcessStat(const std::string& pid);

}  // namespace shoal
