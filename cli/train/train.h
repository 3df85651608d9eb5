#pragma once

#include <string>
#include <vector>

#include "common/job/job.h"

namespace shoal {

// What `shoal train` was asked for.
struct TrainOptions {
  std::string program = "shoal";  // as it was called
  std::string job_path;
  int workers = 2;
  int ps = 1;
  std::string run_dir;                 // empty: runs/NAME, by the name of the job
  int threads = 0;                     // for each worker; 0: chosen from the cores
  std::string device = "auto";         // what workers compute on (compute_device.h)
  bool tf32 = false;                   // on GPUs, as shoal-worker is told it
  bool deterministic = false;          // likewise
  std::vector<JobOverride> overrides;  // of the job's fields
  int max_restarts = 10;               // of each process that dies
  bool verbose = false;                // every line of every daemon on the console
};

// Trains a job on a local cluster of child processes, from start to end, and talks to the person
// about it. Returns the exit code of the process.
int Train(const TrainOptions& options);

}  // namespace shoal
