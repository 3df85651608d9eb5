#pragma once

#include "absl/status/status.h"
#include "common/daemon/daemon.h"
#include "common/rpc/event_loop.h"

namespace shoal {

// Runs shoal-ps: serves one ps of the cluster spec until the job is over (OK) or a signal comes
// (kCancelled). After a signal the coordinator has `drain_timeout` to write a checkpoint.
absl::Status RunPs(Daemon& daemon, Time drain_timeout);

}  // namespace shoal
