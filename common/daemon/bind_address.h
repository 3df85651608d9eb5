#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/cluster/cluster_spec.h"
#include "common/rpc/network.h"

namespace shoal {

// Where a server listens.
struct BindAddress {
  std::string listen;  // as Network::Listen takes it: "127.0.0.1:2222", "0.0.0.0:2222", "[::]:2222"
  std::string warning;  // empty where there is nothing to warn of
};

// From the task's own entry of the cluster spec: a loopback address is bound as it is; otherwise
// all interfaces, as TensorFlow's server does, since the name that peers dial need not be one that
// this host knows (a Kubernetes service, a port forwarded).
BindAddress BindAddressOf(const Address& own);

// Has `network` listen there; logs the warning, and where it listens. Errors are Network::Listen's.
absl::Status ListenAsTask(const Address& own, Network* network, Network::Acceptor acceptor);

}  // namespace shoal
