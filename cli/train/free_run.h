#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "common/run/run_paths.h"

namespace shoal {

// Waits until nobody leads the run, as the coordinator at `address`, which is to be started, would:
// takes the run lock (coordinator/takeover/run_lock.h) and leaves it for that one.
// kFailedPrecondition names who leads it; then nothing was written. `say` gets, again and again,
// whom it waits for.
absl::Status AwaitFreeRun(const RunPaths& paths, const std::string& address,
                          const std::function<void(const std::string&)>& say);

}  // namespace shoal
