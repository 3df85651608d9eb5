#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/cluster/cluster_spec.h"
#include "common/daemon/daemon.h"
#include "common/monitoring/monitoring.h"
#include "common/rpc/grpc_network.h"

namespace shoal {

// Serves the pages of Monitoring, with `network` as its loop and the network's figures among them,
// at the daemon's --http_port, on loopback where `own` (the task's address) is one, else on all
// interfaces; null without that setting. An error when the port cannot be had, unless
// --http_optional is given, which makes it null and a warning.
absl::StatusOr<std::unique_ptr<Monitoring>> StartMonitoring(const Daemon& daemon,
                                                            const Address& own,
                                                            GrpcNetwork* network,
                                                            Monitoring::Options options);

}  // namespace shoal
