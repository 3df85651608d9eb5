#include "common/base/text/format_bytes.h"

#include <cstddef>
#include <cstdio>

namespace shoal {

std::string FormatBytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto size = static_cast<double>(bytes);
  size_t unit = 0;
  for (; size >= 1024; ++unit) size /= 1024;  // 2^64 bytes are 16 EiB
  char text[32];
  std::snprintf(text, sizeof(text), unit == 0 ? "%.0f %s" : "%.1f %s", size, kUnits[unit]);
  return text;
}

}  // namespace shoal
