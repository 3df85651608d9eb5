#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/daemon/daemon.h"
#include "worker/compute/backend/numerics_options.h"

namespace shoal {

// The flags of a worker process.
struct WorkerFlags {
  std::string chief;                    // HOST:PORT; empty: as the cluster spec says
  std::string device = "auto";          // devices that compute, as for ChooseDevices()
  bool tf32 = false;                    // NumericsOptions
  bool deterministic = false;           // NumericsOptions
  int64_t threads = 0;                  // 0: as many as UsableCores()
  double coordinator_timeout = 600;     // seconds
  std::string step_records;             // directory; empty: no records
  std::vector<std::string> data_roots;  // directories; empty: all files may be read
};

// Returns the number of compute threads.
int ThreadsOf(const WorkerFlags& flags);

// Returns the numerics of the GPU, if there is one.
NumericsOptions NumericsOf(const WorkerFlags& flags);

// Returns the directories of --data_root as real paths. The error names the flag and the path.
absl::StatusOr<std::vector<std::string>> DataRootsOf(const WorkerFlags& flags);

// Whether errors may quote the job's data to the coordinator at this address. With TLS, it has
// shown the certificate of one.
bool MayQuoteData(bool tls, const std::string& coordinator);

// Runs a worker from its start to its end: the body of Daemon::Run. Connects session, computer and
// step records to a network and runs until the session ends. OK: the job is done. kCancelled:
// drained. Other errors: why it ended (WorkerSession::End). Calls RunEvaluator() if the cluster
// spec names this task as the evaluator.
absl::Status RunWorker(Daemon& daemon, const WorkerFlags& flags);

}  // namespace shoal
