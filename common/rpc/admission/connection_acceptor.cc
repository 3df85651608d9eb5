#include "common/rpc/admission/connection_acceptor.h"

#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace shoal {
namespace {

// The pause before the next try to accept; the short one while silent connections are being ended.
constexpr int kPauseMs = 100;
constexpr int kShortPauseMs = 10;

// Descriptors for all but connections of clients: files, the HTTP port, connections to others.
constexpr rlim_t kOtherFiles = 128;

rlim_t FileLimit() {
  rlimit limit = {};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

}  // namespace

size_t ConnectionsWithinFileLimit(size_t wanted) {
  const rlim_t limit = FileLimit();
  if (limit == RLIM_INFINITY) return wanted;
  return std::min<size_t>(wanted, std::max(limit / 2, limit - std::min(limit, kOtherFiles)));
}

ConnectionAcceptor::ConnectionAcceptor(ListeningSocket socket, Options options)
    : socket_(std::move(socket)), options_(std::move(options)), thread_([this] { Run(); }) {}

void ConnectionAcceptor::Stop() {
  if (ending_.exchange(true)) return;
  shutdown(socket_.fd(), SHUT_RDWR);  // wakes the thread
  thread_.join();
}

absl::Status ConnectionAcceptor::CheckAccepting() const {
  MutexLock lock(&mutex_);
  if (not_accepting_.empty()) return absl::OkStatus();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::steady_clock::now() - not_accepting_since_);
  return absl::ResourceExhaustedError(
      absl::StrCat(not_accepting_, ", for ", seconds.count(), " s"));
}

void ConnectionAcceptor::SetNotAccepting(const std::string& reason) {
  {
    MutexLock lock(&mutex_);
    if (not_accepting_ == reason) return;
    if (not_accepting_.empty()) not_accepting_since_ = std::chrono::steady_clock::now();
    not_accepting_ = reason;
  }
  if (!options_.warn) return;
  options_.warn(reason.empty() ? absl::StrCat(address(), " accepts connections again") : reason);
}

void ConnectionAcceptor::Run() {
  pthread_setname_np(pthread_self(), "accept");
  Next next;
  while (!ending_) {
    if (next.pause_ms < 0) {
      AwaitClient(-1);
    } else {
      poll(nullptr, 0, next.pause_ms);
    }
    next = AcceptAll();
    if (next.reason.has_value()) SetNotAccepting(*next.reason);
  }
}

void ConnectionAcceptor::WarnCrowded() {
  const auto now = std::chrono::steady_clock::now();
  if (!options_.warn || (warned_at_.has_value() && now - *warned_at_ < kCrowdedWarningPeriod))
    return;
  warned_at_ = now;
  options_.warn(absl::StrCat(address(), " has ", options_.connections->max_connections(),
                             " connections, the max at a limit of ", FileLimit(),
                             " open files (ulimit -n); it closes silent ones for new ones"));
}

bool ConnectionAcceptor::AwaitClient(int timeout_ms) {
  pollfd incoming = {socket_.fd(), POLLIN, 0};
  return poll(&incoming, 1, timeout_ms) > 0;
}

ConnectionAcceptor::Next ConnectionAcceptor::AcceptAll() {
  // Makes room only for clients that wait.
  while (!ending_ && AwaitClient(0)) {
    const ClientConnections::Room room = options_.connections->MakeRoom();
    if (room == ClientConnections::Room::kSoon) {
      WarnCrowded();
      return {kShortPauseMs, std::nullopt};
    }
    if (room == ClientConnections::Room::kLater) return {kPauseMs, std::nullopt};
    if (room == ClientConnections::Room::kNone) {
      return {kPauseMs, absl::StrCat(address(), " accepts no more connections: ",
                                     options_.connections->max_connections(),
                                     " are open, the max at a limit of ", FileLimit(),
                                     " open files (ulimit -n)")};
    }
    const int fd = accept4(socket_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      options_.connections->Add(fd);
      options_.on_connection(fd);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != ECONNABORTED && errno != EINTR && !ending_) {
      return {kPauseMs,
              absl::StrCat(address(), " accepts no more connections: ", std::strerror(errno),
                           "; the limit is ", FileLimit(), " open files (ulimit -n)")};
    }
  }
  return {};
}

}  // namespace shoal
