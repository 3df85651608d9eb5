#pragma once

#include <cstdint>
#include <string>

namespace shoal {

// A size for messages: "1.5 MiB".
std::string FormatBytes(uint64_t bytes);

}  // namespace shoal
