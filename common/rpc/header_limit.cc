#include "common/rpc/header_limit.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <unordered_map>
#include <utility>

#include "common/base/mutex.h"
#include "common/rpc/socket_mark.h"

namespace shoal {
namespace {

// RFC 9113, sections 6.2 and 6.10.
constexpr uint8_t kHeaders = 1;
constexpr uint8_t kContinuation = 9;
constexpr uint8_t kEndHeaders = 4;

struct LimitedConnection {
  SocketMark socket;
  std::function<void()> on_flood;
  HeaderScanner scanner;
  bool flooded = false;
};

// One for the process, as there is one recvmsg. A connection that is closed stays until another
// has its descriptor.
class LimitedConnections {
 public:
  void Add(int fd, std::function<void()> on_flood) {
    MutexLock lock(&mutex_);
    connections_[fd] = std::make_shared<LimitedConnection>(
        LimitedConnection{SocketMark(fd), std::move(on_flood), {}});
  }
  // Null when there is none. Read by one thread at a time.
  std::shared_ptr<LimitedConnection> Find(int fd) {
    std::shared_ptr<LimitedConnection> found;
    {
      MutexLock lock(&mutex_);
      const auto it = connections_.find(fd);
      if (it == connections_.end()) return nullptr;
      found = it->second;
    }
    return found->socket.IsOpen() ? found : nullptr;
  }

 private:
  Mutex mutex_;
  std::unordered_map<int, std::shared_ptr<LimitedConnection>> connections_ ABSL_GUARDED_BY(mutex_);
};

LimitedConnections& Limited() {
  static auto* const limited = new LimitedConnections;
  return *limited;
}

bool Accept(LimitedConnection* connection, const msghdr& message, size_t size) {
  for (size_t i = 0; i < message.msg_iovlen && size > 0; ++i) {
    const size_t here = std::min(size, message.msg_iov[i].iov_len);
    if (!connection->scanner.Accept(static_cast<const uint8_t*>(message.msg_iov[i].iov_base), here))
      return false;
    size -= here;
  }
  return true;
}

}  // namespace

bool HeaderScanner::Accept(const uint8_t* data, size_t size) {
  while (size > 0 && header_bytes_ <= kMaxHeaderBytes) {
    size_t taken = 1;
    if (preface_left_ > 0) {
      taken = std::min(preface_left_, size);
      preface_left_ -= taken;
    } else if (payload_left_ > 0) {
      taken = std::min(payload_left_, size);
      payload_left_ -= taken;
    } else {
      head_[head_size_++] = *data;
      if (head_size_ == sizeof(head_)) OnFrame();
    }
    data += taken;
    size -= taken;
  }
  return header_bytes_ <= kMaxHeaderBytes;
}

void HeaderScanner::OnFrame() {
  head_size_ = 0;
  payload_left_ = (size_t{head_[0]} << 16) + (size_t{head_[1]} << 8) + head_[2];
  const uint8_t type = head_[3];
  const uint8_t flags = head_[4];
  if (type != kHeaders && type != kContinuation) return;
  if (type == kHeaders) header_bytes_ = 0;
  header_bytes_ += sizeof(head_) + payload_left_;
  const bool ended = (flags & kEndHeaders) != 0;
  if (ended && header_bytes_ <= kMaxHeaderBytes) header_bytes_ = 0;
}

void LimitHeaders(int fd, std::function<void()> on_flood) {
  Limited().Add(fd, std::move(on_flood));
}

}  // namespace shoal

// gRPC, a shared library, reads through the program's recvmsg, which is this one (CMakeLists.txt
// exports it): there is no other place between the socket and gRPC's parser.
extern "C" ssize_t recvmsg(int fd, msghdr* message, int flags) {
  const ssize_t size = syscall(SYS_recvmsg, fd, message, flags);
  if (size <= 0 || (flags & MSG_PEEK) != 0) return size;
  const std::shared_ptr<shoal::LimitedConnection> connection = shoal::Limited().Find(fd);
  if (connection == nullptr || shoal::Accept(connection.get(), *message, size)) return size;
  if (!std::exchange(connection->flooded, true)) connection->on_flood();
  errno = ECONNRESET;
  return -1;
}
