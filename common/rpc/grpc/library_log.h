#pragma once

#include <string>

namespace shoal {

// Sends the log messages of gRPC and protobuf to `log`, for the whole process. Otherwise they write
// to stderr and may block there. Calls `log` on any thread.
void SendLibraryLogTo(void (*log)(const std::string& message));

}  // namespace shoal
