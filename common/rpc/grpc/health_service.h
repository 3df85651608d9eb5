#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/rpc/network.h"

namespace shoal {

// The standard service grpc.health.v1.Health, for probes of containers and load balancers. It
// answers SERVING while the loop runs. It is not gRPC's own implementation, because that one uses
// gRPC's callback API. This API adds polling threads that take events from our queue: measured a
// third fewer steps per second.

bool IsHealthMethod(const std::string& method);

// Accepts a stream of a health method (Network::Acceptor).
absl::StatusOr<StreamCallbacks> AcceptHealthCheck(const std::string& method,
                                                  std::unique_ptr<Stream> stream);

}  // namespace shoal
