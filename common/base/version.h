#pragma once

#include <string>

#include "absl/status/status.h"

namespace shoal {

// "0.1.0"; the version of the whole of Shoal.
extern const char kVersion[];

// OK when `theirs`, the version that a peer says it is of, is ours: the protocol has no
// compatibility between versions. Else kFailedPrecondition, which names both. `peer`: "worker 1
// at 10.0.0.3:2222".
absl::Status CheckVersion(const std::string& theirs, const std::string& peer);

}  // namespace shoal
