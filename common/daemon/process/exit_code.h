#pragma once

#include "absl/status/status.h"

namespace shoal {

// The exit codes of Shoal's processes. 64 to 78 are those of sysexits.h. A supervisor should
// restart the process only after 128 and above.
enum ExitCode : int {
  kExitDone = 0,
  kExitUsage = 64,      // wrong flags
  kExitBadData = 65,    // a bad file: damaged, or outside tolerance
  kExitFencedOff = 77,  // another coordinator took over; do not restart this one
  // A wrong cluster spec, job or model, or a machine with too little memory. A restart does not
  // help.
  kExitBadConfiguration = 78,
  kExitRestart = 138,  // lost a peer, or lacks a resource; a restart may help
  kExitDrained = 143,  // clean stop after SIGTERM, SIGINT or SIGHUP
};

// Returns the exit code for work that ended with `status`: kDataLoss and kOutOfRange mean bad data,
// kAborted a fenced-off coordinator, kCancelled a clean stop. Errors that the user can fix mean bad
// configuration. All others request a restart.
ExitCode ExitCodeOf(const absl::Status& status);

// True for the exit codes of sysexits.h (64 to 78). A restarted process would end in the same way.
inline bool IsRestartUseless(int exit_code) { return exit_code >= 64 && exit_code <= 78; }

}  // namespace shoal
