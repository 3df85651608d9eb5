#pragma once

#include <string>

#include "absl/status/status.h"

namespace shoal {

// Whether a server could listen at `address` (HOST:PORT or [IPV6]:PORT) just now; the error says
// why not and what to do. Always OK for "unix:PATH".
absl::Status CheckCanListen(const std::string& address);

}  // namespace shoal
