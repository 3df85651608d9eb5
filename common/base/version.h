#pragma once

#include <string>

#include "absl/status/status.h"

namespace shoal {

// The version of all of Shoal: "0.1.0".
extern const char kVersion[];

// Returns kFailedPrecondition, with both versions, unless `theirs`, the version that a peer
// reports, equals ours. The protocol is not compatible between versions. `peer` is for example
// "worker 1 at 10.0.0.3:2222".
absl::Status CheckVersion(const std::string& theirs, const std::string& peer);

// Returns kInvalidArgument for a peer whose bytes do not parse as the expected message. `type` is
// its full name, "shoal.proto.WorkerReport". The peer has another version, or is another program.
absl::Status InvalidMessageError(const std::string& peer, const std::string& type);

}  // namespace shoal
