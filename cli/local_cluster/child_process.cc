#include "cli/local_cluster/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace shoal {
namespace {

struct Pipe {
  int read_end = -1;
  int write_end = -1;

  bool Open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    read_end = ends[0];
    write_end = ends[1];
    return true;
  }
  ~Pipe() {
    if (read_end >= 0) close(read_end);
    if (write_end >= 0) close(write_end);
  }
};

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Blocks all signals in this thread while it lives.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &previous_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &previous_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t previous_;
};

// Resets the parent's handlers. Otherwise they would run in the child, and report its signals to
// the parent, until exec.
void LeaveHandlersToParent() {
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action;
    if (sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN)
      signal(number, SIG_DFL);
  }
}

// Does the work of the child between fork and exec; all signals are blocked at its start. Calls
// only functions that are safe there. Returns errno.
int BecomeProgram(const char* program, char* const* arguments, char* const* environment,
                  const sigset_t& blocked, int output, pid_t parent) {
  if (setpgid(0, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno;
  if (getppid() != parent) _exit(1);  // the parent died before prctl
  const int input = open("/dev/null", O_RDONLY);
  if (input < 0 || dup2(input, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
      dup2(output, STDERR_FILENO) < 0) {
    return errno;
  }
  if (input > STDERR_FILENO) close(input);
  LeaveHandlersToParent();
  sigprocmask(SIG_SETMASK, &blocked, nullptr);
  signal(SIGPIPE, SIG_DFL);
  execve(program, arguments, environment);
  return errno;
}

absl::Status SpawnError(const std::string& program, int error) {
  return absl::FailedPreconditionError("cannot start " + program + ": " + std::strerror(error));
}

ExitCause FromWaitStatus(int status) {
  if (WIFSIGNALED(status)) return {.by_signal = true, .code = WTERMSIG(status)};
  return {.by_signal = false, .code = WEXITSTATUS(status)};
}

}  // namespace

std::string ExitCause::ToString() const {
  if (!by_signal) return "exit code " + std::to_string(code);
  const char* name = sigabbrev_np(code);
  return "killed by " + (name ? std::string("SIG") + name + " (signal " : std::string("(signal ")) +
         std::to_string(code) + ")";
}

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Spawn(const Options& options) {
  std::vector<std::string> arguments = options.arguments;
  arguments.insert(arguments.begin(), options.program);
  const std::vector<char*> argv = Pointers(arguments);
  const std::vector<char*> envp = Pointers(options.environment);
  const pid_t parent = getpid();
  sigset_t blocked;
  sigemptyset(&blocked);
  if (options.handles_sigterm) sigaddset(&blocked, SIGTERM);
  Pipe output, failure;  // exec closes the second; an errno in it means that exec failed
  if (!output.Open() || !failure.Open()) return SpawnError(options.program, errno);

  const BlockedSignals until_it_runs;
  const pid_t pid = fork();
  if (pid < 0) return SpawnError(options.program, errno);
  if (pid == 0) {
    const int error = BecomeProgram(options.program.c_str(), argv.data(), envp.data(), blocked,
                                    output.write_end, parent);
    if (write(failure.write_end, &error, sizeof(error)) != sizeof(error)) _exit(126);
    _exit(127);
  }
  close(failure.write_end);
  failure.write_end = -1;
  int error = 0;
  ssize_t size;
  do {
    size = read(failure.read_end, &error, sizeof(error));
  } while (size < 0 && errno == EINTR);
  if (size != 0) {
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    return SpawnError(options.program, error);
  }
  const int read_end = output.read_end;
  output.read_end = -1;
  fcntl(read_end, F_SETFL, O_NONBLOCK);
  return std::unique_ptr<ChildProcess>(new ChildProcess(pid, read_end));
}

ChildProcess::~ChildProcess() {
  if (!TryReap().has_value()) {
    Signal(SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  close(output_);
}

void ChildProcess::Signal(int signal) {
  if (!exit_cause_.has_value()) kill(-pid_, signal);
}

std::optional<ExitCause> ChildProcess::TryReap() {
  int status = 0;
  if (!exit_cause_.has_value() && waitpid(pid_, &status, WNOHANG) == pid_) {
    exit_cause_ = FromWaitStatus(status);
  }
  return exit_cause_;
}

}  // namespace shoal
