#pragma once

#include <vector>

#include "absl/status/status.h"
#include "common/cluster/cluster_spec.h"
#include "common/daemon/daemon.h"
#include "worker/compute/backend/compute_device.h"
#include "worker/worker_process.h"

namespace shoal {

// An evaluator from its start to its end: the body of Daemon::Run of a worker whose cluster spec
// says that it is one. OK: the job is done. kCancelled: told to stop. Else why it ended.
absl::Status RunEvaluator(Daemon& daemon, const WorkerFlags& flags, const ClusterSpec& cluster,
                          const std::vector<ComputeDevice>& devices);

}  // namespace shoal
