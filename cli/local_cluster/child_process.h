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

// A child of this process, in its own process group. Its standard input is empty; standard output
// and error share one pipe. It dies with the thread that spawned it, even if SIGKILL kills that
// thread: spawn it from a thread that lives as long as the process. Not thread-safe.
class ChildProcess {
 public:
  struct Options {
    std::string program;                   // path of the executable
    std::vector<std::string> arguments;    // without the program's name
    std::vector<std::string> environment;  // "NAME=value"
    // The program handles SIGTERM: an earlier SIGTERM stays pending until then and does not kill
    // it.
    bool handles_sigterm = false;
  };
  // Returns once the program runs. An error names the program and the reason.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Spawn(const Options& options);
  // Kills and reaps the process if it still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // Read end of the output's pipe, non-blocking; closed by the destructor.
  int output() const { return output_; }
  // Sends a signal to the process group; no effect once the process is reaped.
  void Signal(int signal);
  // Reaps the process if it has ended. Returns the same cause on every later call.
  std::optional<ExitCause> TryReap();

 private:
  ChildProcess(pid_t pid, int output) : pid_(pid), output_(output) {}

  const pid_t pid_;
  const int output_;
  std::optional<ExitCause> exit_cause_;
};

}  // namespace shoal
