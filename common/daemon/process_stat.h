#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace shoal {

// What the system says of a process in /proc/PID/stat (proc(5)).
struct ProcessStat {
  char state = 0;           // 'Z', 'X': only what its parent has not waited for yet is there
  uint64_t user_ticks = 0;  // of CPU time, sysconf(_SC_CLK_TCK) a second
  uint64_t system_ticks = 0;
  uint64_t threads = 0;
  uint64_t start_ticks = 0;  // since the start of the machine
  uint64_t virtual_bytes = 0;
  uint64_t resident_pages = 0;
};

// Of the process with this id, "self" for this one. Nothing where /proc does not say: there is
// none, or it is hidden (hidepid).
std::optional<ProcessStat> ReadProcessStat(const std::string& pid);

}  // namespace shoal
