#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/daemon/daemon.h"
#include "worker/compute/backend/compute_freedoms.h"

namespace shoal {

// What a worker process is told on its command line.
struct WorkerFlags {
  std::string chief;                 // HOST:PORT; empty: as the cluster spec says
  std::string device = "auto";       // what computes, as ChooseDevices takes it
  bool tf32 = false;                 // ComputeFreedoms
  bool deterministic = false;        // likewise
  int64_t threads = 0;               // 0: one for each core
  double coordinator_timeout = 600;  // seconds
  std::string step_records;          // directory; empty: none are written
};

// How many threads compute.
int ThreadsOf(const WorkerFlags& flags);

// What the GPU is free to, where there is one.
ComputeFreedoms FreedomsOf(const WorkerFlags& flags);

// A worker from its start to its end: wires session, computer and step records to the daemon's
// network, and runs until the session is over. OK: the job is done. kCancelled: drained. Else why
// it ended (WorkerSession::End). Where the cluster spec says that it is the evaluator, it is one
// (RunEvaluator). The body of Daemon::Run.
absl::Status RunWorker(Daemon& daemon, const WorkerFlags& flags);

}  // namespace shoal
