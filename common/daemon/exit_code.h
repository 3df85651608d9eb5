#pragma once

#include "absl/status/status.h"

namespace shoal {

// How a process of Shoal ends. 64 to 78 are those of sysexits.h; what supervises the process should
// start it again after 128 and above only.
enum ExitCode : int {
  kExitDone = 0,
  kExitUsage = 64,      // wrong flags
  kExitBadData = 65,    // a file that is not what it should be: damaged, or outside tolerance
  kExitFencedOff = 77,  // another coordinator has taken over: this one must not come back
  // A wrong cluster spec, job or model, or a machine without the memory: starting again does not
  // help.
  kExitBadConfiguration = 78,
  kExitRestart = 138,  // a peer was lost or a resource missing: starting again may help
  kExitDrained = 143,  // stopped in order after SIGTERM, SIGINT or SIGHUP
};

// The exit code of a process whose work ended with `status`: kDataLoss and kOutOfRange are data,
// kAborted is a coordinator fenced off, kCancelled is a stop in order, what the one who started it
// can set right is configuration, the rest asks for a restart.
ExitCode ExitCodeOf(const absl::Status& status);

// True for the exit codes of sysexits.h (64 to 78): the process would end so again.
inline bool IsRestartUseless(int exit_code) { return exit_code >= 64 && exit_code <= 78; }

}  // namespace shoal
