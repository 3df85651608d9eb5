#pragma once

#include <vector>

#include "absl/status/status.h"
#include "common/cluster/cluster_spec.h"
#include "common/daemon/daemon.h"
#include "worker/compute/registry/compute_device.h"
#include "worker/worker_process.h"

namespace shoal {

// Runs an evaluator from its start to its end: the body of Daemon::Run if the cluster spec names
// this worker as the evaluator. OK: the job is done. kCancelled: stopped by a signal. Other errors:
// why it ended.
absl::Status RunEvaluator(Daemon& daemon, const WorkerFlags& flags, const ClusterSpec& cluster,
                          const std::vector<ComputeDevice>& devices);

}  // namespace shoal
