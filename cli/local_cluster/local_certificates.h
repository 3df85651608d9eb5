#pragma once

#include <string>

#include "absl/status/status.h"
#include "cli/local_cluster/tf_config.h"

namespace shoal {

// Returns the TLS directory of a task below `directory`: DIR/ps-0.
std::string TlsDirectoryOf(const std::string& directory, const TaskId& task);
// Returns that of the user's own commands: DIR/operator.
std::string OperatorTlsDirectory(const std::string& directory);

// Removes a directory of certificates. OK if there is none. An error names the path.
absl::Status RemoveCertificates(const std::string& directory);

// Makes a CA, and from it a TLS directory for each task of the cluster and one for an operator, all
// below `directory`. Replaces what an earlier call made there. Removes the CA's key at the end,
// after an error too: no further certificate can follow. Errors name the path.
absl::Status MakeLocalCertificates(const std::string& directory, const ClusterAddresses& addresses);

}  // namespace shoal
