#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/tls/tls_session.h"
#include "google/protobuf/message.h"

namespace shoal {

// Sends one request for a command that does nothing else, waits for the answer and parses it into
// `reply`. `tls` is null for a coordinator without TLS. While it waits, it prints to stderr what
// the coordinator waits for (promise 8). Errors are those of ClusterCall.
absl::Status AskCoordinator(const std::string& address, const std::string& method,
                            const google::protobuf::Message& request, Time timeout,
                            const std::shared_ptr<TlsSession>& tls,
                            google::protobuf::Message* reply);

}  // namespace shoal
