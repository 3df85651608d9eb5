#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace shoal {

// How a process ended.
struct ExitCause {
  bool by_signal = false;
  int code = 0;  // exit code, or number of the signal

  bool ok() const { return !by_signal && code == 0; }
  // "exit code 65", "killed by SIGKILL (signal 9)".
  std::string ToString() const;
};

// A child of this process, in a process group of its own, standard input empty, standard output and
// error in one pipe. It dies with the thread that spawned it, even if that is killed with SIGKILL:
// spawn from a thread that lives as long as the process. Not thread-safe.
class ChildProcess {
 public:
  struct Options {
    std::string program;                   // path of the executable
    std::vector<std::string> arguments;    // without the program's name
    std::vector<std::string> environment;  // "NAME=value"
    // SIGTERM that comes before the program heeds it waits until then, and does not kill it.
    bool heeds_sigterm = false;
  };
  // Returns once the program runs; an error names the program and why it could not be started.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Spawn(const Options& options);
  // Kills and reaps what still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // Read end of the output's pipe, non-blocking; closed by the destructor.
  int output() const { return output_; }
  // Sends a signal to the process group; no effect when the process has been reaped.
  void Signal(int signal);
  // Reaps the process if it has ended; what was returned once is returned again.
  std::optional<ExitCause> TryReap();

 private:
  ChildProcess(pid_t pid, int output) : pid_(pid), output_(output) {}

  const pid_t pid_;
  const int output_;
  std::optional<ExitCause> exit_cause_;
};

}  // namespace shoal
