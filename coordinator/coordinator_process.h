#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/daemon/daemon.h"

namespace shoal {

// A coordinator from its start to its end: reads the job, makes the run directory ("runs/NAME" when
// `run_dir` is empty; `take_over`: takes the ps of another run, too), serves workers and operators
// at its address of the cluster spec, and trains until the run is over. OK: the job is done.
// kCancelled: stopped in order. kAborted: fenced off by another coordinator. Else why it failed.
// The body of Daemon::Run.
absl::Status RunCoordinator(Daemon& daemon, const std::string& job_file, std::string run_dir,
                            bool take_over);

}  // namespace shoal
