#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/cluster/cluster_spec.h"
#include "common/daemon/daemon.h"
#include "common/monitoring/monitoring.h"
#include "common/rpc/grpc/grpc_network.h"

namespace shoal {

// Serves the pages of Monitoring at the daemon's --http_port, on the loop of `network` and with the
// network's stats. Call it after Daemon::Listen, where the daemon listens. With --tls_dir the pages
// need TLS, and /metrics a certificate that may see it (common/security/permissions.h) or the token
// of --metrics_token_file. The result must not outlive the network. Listens on loopback if `own`
// (the task's address) is one, else on all interfaces. Returns null without --http_port. An error
// if the port is not available; with
// --http_optional, null and a warning instead.
absl::StatusOr<std::unique_ptr<Monitoring>> StartMonitoring(const Daemon& daemon,
                                                            const Address& own,
                                                            GrpcNetwork* network,
                                                            Monitoring::Options options);

}  // namespace shoal
