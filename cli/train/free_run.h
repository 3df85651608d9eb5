#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "common/run/run_paths.h"

namespace shoal {

// Waits until no coordinator leads the run: takes the run lock (coordinator/takeover/run_lock.h) as
// the coordinator that will start at `address` would, and releases it for that coordinator.
// kFailedPrecondition names the leader of the run; nothing was written then. Calls `say` repeatedly
// with the reason for the wait.
absl::Status AwaitFreeRun(const RunPaths& paths, const std::string& address,
                          const std::function<void(const std::string&)>& say);

}  // namespace shoal
