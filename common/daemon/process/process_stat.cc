#include "common/daemon/process/process_stat.h"

#include <fstream>
#include <sstream>

namespace shoal {

std::optional<ProcessStat> ReadProcessStat(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string line;
  std::getline(file, line);
  // The name, in parentheses, may contain any character. The state, field 3, follows it.
  const size_t end = line.rfind(')');
  if (end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(end + 1));
  const auto skip = [&fields](int count) {
    std::string field;
    while (count-- > 0) fields >> field;
  };
  ProcessStat stat;
  fields >> stat.state;
  skip(10);
  fields >> stat.user_ticks >> stat.system_ticks;  // 14, 15
  skip(4);
  fields >> stat.threads;  // 20
  skip(1);
  fields >> stat.start_ticks >> stat.virtual_bytes >> stat.resident_pages;  // 22, 23, 24
  if (!fields) return std::nullopt;
  return stat;
}

}  // namespace shoal
