#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/cluster/cluster_spec.h"

namespace shoal {

// The protection of a port that is open beyond loopback.
enum class PortSecurity {
  kNone,      // neither --tls_dir nor --insecure: such a port is refused
  kInsecure,  // --insecure: plain traffic, which the operator wants
  kTls,       // --tls_dir
};

// The address on which a server listens.
struct BindAddress {
  std::string listen;   // for Network::Listen: "127.0.0.1:2222", "0.0.0.0:2222", "[::]:2222"
  std::string warning;  // empty: no warning. Else the port serves plain traffic beyond loopback
};

// Returns the address for the task's own entry in the cluster spec. A loopback address is used
// unchanged. Any other entry means all interfaces, as in TensorFlow's server. This host may not
// know the name that peers dial (a Kubernetes service, a forwarded port). InvalidArgument for such
// an entry with PortSecurity::kNone.
absl::StatusOr<BindAddress> BindAddressOf(const Address& own, PortSecurity security);

}  // namespace shoal
