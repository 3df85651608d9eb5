#pragma once

#include <string>
#include <vector>

#include "cli/local_cluster/local_cluster.h"
#include "cli/local_cluster/tf_config.h"

namespace shoal {

// The description of a local cluster.
struct ClusterPlan {
  ClusterAddresses addresses;
  std::string binary_dir;  // holds shoal-coordinator, shoal-ps and shoal-worker
  std::string job_path;    // absolute
  std::string run_dir;     // absolute
  int threads_per_worker = 1;
  std::string device = "auto";  // the workers' device, passed to shoal-worker
  bool tf32 = false;            // passed to the workers, like the next
  bool deterministic = false;
  std::string tls_dir;  // of MakeLocalCertificates(); empty: plain
};

// Returns the commands of all daemons of the plan: coordinator, ps, workers. `environment` is that
// of this process, as "NAME=value". The daemons do not inherit variables that would mislead them:
// another cluster's TF_CONFIG, proxies, and Shoal's settings, except those of the log.
std::vector<TaskCommand> DaemonCommands(const ClusterPlan& plan,
                                        const std::vector<std::string>& environment);

// Returns the environment of this process.
std::vector<std::string> OwnEnvironment();

// Returns the directory of this process's executable, which also holds the daemons.
std::string OwnBinaryDirectory();

// Returns the number of compute threads for each of `workers` on this machine: an equal share of
// its cores, at least 1. More threads than cores make all workers much slower.
int ThreadsPerWorker(int workers);

}  // namespace shoal
