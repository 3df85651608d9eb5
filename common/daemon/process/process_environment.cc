#include "common/daemon/process/process_environment.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/daemon/process/exit_code.h"

namespace shoal {
namespace {

// Descriptors for the log, event loop, signals, a listening socket, some streams and files.
constexpr rlim_t kMinOpenFiles = 64;

}  // namespace

void OpenStandardDescriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // open returns the lowest free number, which is this one.
    if (fcntl(descriptor, F_GETFD) < 0)
      open("/dev/null", descriptor == STDOUT_FILENO ? O_RDONLY : O_RDWR);
  }
}

void ClearProxyVariables() {
  for (const char* name : {"http_proxy", "https_proxy", "grpc_proxy", "all_proxy", "HTTP_PROXY",
                           "HTTPS_PROXY", "GRPC_PROXY", "ALL_PROXY"}) {
    unsetenv(name);
  }
}

void UseSystemNames() { setenv("GRPC_DNS_RESOLVER", "native", /*overwrite=*/0); }

void KeepOpenSslUntilExit() { OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr); }

absl::Status UsePassiveOpenMpThreads(char** argv) {
  constexpr char kVariable[] = "OMP_WAIT_POLICY";
  if (std::getenv(kVariable) != nullptr) {
    // A program started as /proc/self/exe is called "exe" in every list of processes.
    prctl(PR_SET_NAME, program_invocation_short_name);
    return absl::OkStatus();
  }
  setenv(kVariable, "passive", 1);
  execv("/proc/self/exe", argv);
  return absl::UnavailableError(absl::StrCat("/proc/self/exe could not be started again with ",
                                             kVariable, "=passive: ", std::strerror(errno),
                                             "; set it in the environment for full speed"));
}

void RaiseFileLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

absl::Status CheckFileLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kMinOpenFiles)
    return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the limit of open files (RLIMIT_NOFILE) is ", limit.rlim_cur, "; it must be at least ",
      kMinOpenFiles, ": type `ulimit -n 1024` and try again"));
}

void ExitWithParent(int parent_pid) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent_pid) _exit(kExitDrained);  // the parent ended before prctl
}

}  // namespace shoal
