#pragma once

#include <string>
#include <vector>

#include "cli/local_cluster/local_cluster.h"
#include "cli/local_cluster/tf_config.h"

namespace shoal {

// What a local cluster is to be.
struct ClusterPlan {
  ClusterAddresses addresses;
  std::string binary_dir;  // holds shoal-coordinator, shoal-ps and shoal-worker
  std::string job_path;    // absolute
  std::string run_dir;     // absolute
  int threads_per_worker = 1;
  std::string device = "auto";  // what workers compute on, as shoal-worker is told it
  bool tf32 = false;            // likewise, as is
  bool deterministic = false;
};

// The commands of all daemons of the plan: coordinator, ps, workers. `environment` is that of this
// process, as "NAME=value"; what would lead a daemon astray (another cluster's TF_CONFIG, proxies,
// settings of Shoal but for those of the log) is left out of theirs.
std::vector<TaskCommand> DaemonCommands(const ClusterPlan& plan,
                                        const std::vector<std::string>& environment);

// The environment of this process.
std::vector<std::string> OwnEnvironment();

// The directory of this process's executable: its daemons lie beside it.
std::string OwnBinaryDirectory();

// Compute threads for each of `workers` on this machine: its cores shared out, at least 1. More
// threads than cores make all of them slower by far.
int ThreadsPerWorker(int workers);

}  // namespace shoal
