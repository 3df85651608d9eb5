#include "common/daemon/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace shoal {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Sends a word as sd_notify(3) does. $NOTIFY_SOCKET is the path of a socket, or "@NAME" for one in
// the abstract namespace.
absl::Status Notify(const std::string& word, int flags) {
  const std::string path = Variable("NOTIFY_SOCKET");
  if (path.empty()) return absl::OkStatus();
  const auto failed = [&](int error) {
    return absl::ErrnoToStatus(error,
                               absl::StrCat("cannot send ", word, " to NOTIFY_SOCKET=", path));
  };
  sockaddr_un address = {.sun_family = AF_UNIX};
  if (path.size() >= sizeof(address.sun_path)) return failed(ENAMETOOLONG);
  std::copy(path.begin(), path.end(), address.sun_path);
  if (path.front() == '@') address.sun_path[0] = '\0';
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return failed(errno);
  const ssize_t sent = sendto(fd, word.data(), word.size(), MSG_NOSIGNAL | flags,
                              reinterpret_cast<const sockaddr*>(&address),
                              offsetof(sockaddr_un, sun_path) + path.size());
  const int error = errno;
  close(fd);
  return sent < 0 ? failed(error) : absl::OkStatus();
}

// The period of the watchdog; zero if none watches this process.
Time WatchdogTime() {
  int64_t microseconds = 0;
  int64_t pid = 0;
  const bool for_another =
      absl::SimpleAtoi(Variable("WATCHDOG_PID"), &pid) && pid != static_cast<int64_t>(getpid());
  if (for_another || !absl::SimpleAtoi(Variable("WATCHDOG_USEC"), &microseconds)) return {};
  return std::chrono::microseconds(std::max<int64_t>(microseconds, 0));
}

void KeepWatchdogContent(EventLoop* loop, Time pause) {
  // Does not wait, because a slow service manager must not stop the loop. The next word makes up
  // for a lost one.
  (void)Notify("WATCHDOG=1", MSG_DONTWAIT);
  loop->CallAfter(pause, [loop, pause] { KeepWatchdogContent(loop, pause); });
}

}  // namespace

absl::Status NotifyReady(EventLoop* loop) {
  SHOAL_RETURN_IF_ERROR(Notify("READY=1", 0));
  if (const Time watchdog = WatchdogTime(); watchdog > Time::zero()) {
    KeepWatchdogContent(loop, watchdog / 2);
  }
  return absl::OkStatus();
}

absl::Status NotifyStopping() { return Notify("STOPPING=1", MSG_DONTWAIT); }

}  // namespace shoal
