#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/daemon/daemon.h"

namespace shoal {

// Runs a coordinator from start to end; the body of Daemon::Run. Reads the job and makes the run
// directory ("runs/NAME" if `run_dir` is empty). Serves workers and operators at its address in the
// cluster spec, and trains until the run is over. `take_over`: takes the ps away from another run
// too.
//
// OK: the job is done. kCancelled: stopped in order. kAborted: fenced off by another coordinator.
// Other errors: the job failed.
absl::Status RunCoordinator(Daemon& daemon, const std::string& job_file, std::string run_dir,
                            bool take_over);

}  // namespace shoal
