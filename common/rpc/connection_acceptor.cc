#include "common/rpc/connection_acceptor.h"

#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace shoal {
namespace {

// Until it is tried again whether a connection can be accepted.
constexpr int kPauseMs = 100;

// Descriptors for all but connections of clients: files, the HTTP port, connections to others.
constexpr rlim_t kOtherFiles = 128;

rlim_t FileLimit() {
  rlimit limit = {};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

ino_t InodeOf(int fd) {
  struct stat file = {};
  return fstat(fd, &file) == 0 ? file.st_ino : 0;
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

std::string ConnectionAcceptor::Deaf() const {
  MutexLock lock(&mutex_);
  if (deaf_.empty()) return "";
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::steady_clock::now() - deaf_since_);
  return absl::StrCat(deaf_, ", since ", seconds.count(), " s");
}

void ConnectionAcceptor::SetDeaf(const std::string& reason) {
  {
    MutexLock lock(&mutex_);
    if (deaf_ == reason) return;
    if (deaf_.empty()) deaf_since_ = std::chrono::steady_clock::now();
    deaf_ = reason;
  }
  if (!options_.warn) return;
  options_.warn(reason.empty() ? absl::StrCat(address(), " takes connections again") : reason);
}

void ConnectionAcceptor::Run() {
  pthread_setname_np(pthread_self(), "accept");
  bool can_accept = true;
  while (!ending_) {
    pollfd incoming = {socket_.fd(), POLLIN, 0};
    poll(&incoming, can_accept ? 1 : 0, can_accept ? -1 : kPauseMs);
    const std::string reason = AcceptAll();
    can_accept = reason.empty();
    SetDeaf(reason);
  }
}

std::string ConnectionAcceptor::AcceptAll() {
  while (!ending_) {
    if (IsFull()) {
      return absl::StrCat(address(), " takes no more connections: ", connections_.size(),
                          " are open, the most that it takes with a limit of ", FileLimit(),
                          " open files (ulimit -n)");
    }
    const int fd = accept4(socket_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      connections_.push_back({fd, InodeOf(fd)});
      options_.on_connection(fd);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != ECONNABORTED && errno != EINTR && !ending_) {
      return absl::StrCat(address(), " takes no more connections: ", std::strerror(errno),
                          "; the limit is ", FileLimit(), " open files (ulimit -n)");
    }
  }
  return "";
}

bool ConnectionAcceptor::IsFull() {
  if (connections_.size() < options_.max_connections) return false;
  std::erase_if(connections_,
                [](const Connection& each) { return InodeOf(each.fd) != each.inode; });
  return connections_.size() >= options_.max_connections;
}

}  // namespace shoal
