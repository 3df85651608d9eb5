#pragma once

#include <cstdint>
#include <string>

namespace shoal {

// A size as people read it: "1.5 MiB".
std::string FormatBytes(uint64_t bytes);

}  // namespace shoal
