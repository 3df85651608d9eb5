#pragma once

#include <string>
#include <vector>

#include "common/job/job.h"

namespace shoal {

// The options of `shoal train`.
struct TrainOptions {
  std::string program = "shoal";  // as the user called it
  std::string job_path;
  int workers = 2;
  int ps = 1;
  std::string run_dir;                 // empty: runs/NAME, with the job's name
  int threads = 0;                     // of each worker; 0: depends on the cores
  std::string device = "auto";         // the workers' device (compute_device.h)
  bool tf32 = false;                   // on GPUs; passed to shoal-worker
  bool deterministic = false;          // likewise
  std::vector<JobOverride> overrides;  // of the job's fields
  int max_restarts = 10;               // per process
  bool tls = false;                    // all traffic is encrypted and authenticated
  bool verbose = false;                // prints every line of every daemon
};

// Trains a job on a local cluster of child processes, from start to end, and reports to the user.
// Returns the exit code of the process.
int Train(const TrainOptions& options);

}  // namespace shoal
