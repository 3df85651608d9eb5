#pragma once

#include "absl/status/status.h"
#include "common/daemon/daemon.h"
#include "common/rpc/event_loop.h"

namespace shoal {

// What shoal-ps does: serves one ps of the cluster spec until the job is over (OK), or a signal has
// come (kCancelled): then the coordinator has `drain_timeout` to have a checkpoint written.
absl::Status RunPs(Daemon& daemon, Time drain_timeout);

}  // namespace shoal
