#pragma once

#include <string>

namespace shoal {

// Has `log` told what gRPC and protobuf have to say, which they would write on stderr themselves,
// from whatever thread it is and waiting for whoever reads. For the whole process; `log` is called
// on any thread.
void SendLibraryLogTo(void (*log)(const std::string& message));

}  // namespace shoal
