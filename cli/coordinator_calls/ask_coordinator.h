#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/rpc/event_loop.h"
#include "google/protobuf/message.h"

namespace shoal {

// For a command that has nothing else to do: asks once, waits for the answer, parses it into
// `reply`. While there is none, it says on stderr what the coordinator waits for (promise 8).
// Errors are ClusterCall's.
absl::Status AskCoordinator(const std::string& address, const std::string& method,
                            const google::protobuf::Message& request, Time timeout,
                            google::protobuf::Message* reply);

}  // namespace shoal
