#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/cluster/cluster_spec.h"
#include "common/rpc/network.h"

namespace shoal {

// The address on which a server listens.
struct BindAddress {
  std::string listen;   // for Network::Listen: "127.0.0.1:2222", "0.0.0.0:2222", "[::]:2222"
  std::string warning;  // empty: no warning
};

// Returns the address for the task's own entry in the cluster spec. A loopback address is used
// unchanged. Any other entry means all interfaces, as in TensorFlow's server. This host may not
// know the name that peers dial (a Kubernetes service, a forwarded port).
BindAddress BindAddressOf(const Address& own);

// Makes `network` listen there. Logs the address and the warning. Errors are Network::Listen's.
absl::Status ListenAsTask(const Address& own, Network* network, Network::Acceptor acceptor);

}  // namespace shoal
