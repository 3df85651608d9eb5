#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/rpc/network.h"

namespace shoal {

// The standard service grpc.health.v1.Health, for probes of containers and load balancers: says
// SERVING while the loop turns. Not gRPC's own implementation: that one is written for its callback
// API, which adds polling threads that take events away from our queue (a third fewer steps per
// second were measured).

bool IsHealthMethod(const std::string& method);

// Accepts a stream of a health method (Network::Acceptor).
absl::StatusOr<StreamCallbacks> AcceptHealthCheck(const std::string& method,
                                                  std::unique_ptr<Stream> stream);

}  // namespace shoal
