#include "common/rpc/admission/receiving_limit.h"

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
#include "common/rpc/admission/frame_scanner.h"
#include "common/rpc/admission/socket_mark.h"

namespace shoal {
namespace {

struct LimitedConnection {
  LimitedConnection(int fd, ReceivingLimits limits)
      : socket(fd), limits(std::move(limits)), max_message_bytes(this->limits.max_message_bytes) {}

  const SocketMark socket;
  const ReceivingLimits limits;
  FrameScanner scanner;
  bool flooded = false;
  std::atomic<uint64_t> max_message_bytes;
  std::atomic<bool> held = false;  // reads stop until ResumeReading()
};

// All limited connections of the process, because it has one recvmsg. A closed connection stays
// until another one has its descriptor.
class LimitedConnections {
 public:
  void Add(int fd, ReceivingLimits limits) {
    MutexLock lock(&mutex_);
    connections_[fd] = std::make_shared<LimitedConnection>(fd, std::move(limits));
  }
  // Returns null if there is none. Only one thread at a time may read from the connection.
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
  if (connection->limits.on_too_long)
    connection->scanner.messages().set_max_bytes(connection->max_message_bytes);
  for (size_t i = 0; i < message.msg_iovlen && size > 0; ++i) {
    const size_t here = std::min(size, message.msg_iov[i].iov_len);
    if (!connection->scanner.Accept(static_cast<const uint8_t*>(message.msg_iov[i].iov_base), here))
      return false;
    size -= here;
  }
  if (const uint64_t too_long = connection->scanner.messages().TakeTooLong(); too_long > 0) {
    connection->held = true;
    connection->limits.on_too_long(too_long);
  }
  return true;
}

}  // namespace

void LimitReceiving(int fd, ReceivingLimits limits) { Limited().Add(fd, std::move(limits)); }

void AllowMessages(int fd, uint64_t bytes) {
  const std::shared_ptr<LimitedConnection> connection = Limited().Find(fd);
  if (connection != nullptr && connection->max_message_bytes < bytes)
    connection->max_message_bytes = bytes;
}

void ResumeReading(int fd) {
  const std::shared_ptr<LimitedConnection> connection = Limited().Find(fd);
  if (connection == nullptr || !connection->held.exchange(false)) return;
  // gRPC waits until the socket becomes readable, but it is readable already. This call makes the
  // kernel report it again.
  const int one = 1;
  setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof(one));
}

}  // namespace shoal

// Replaces the system's recvmsg. gRPC, a shared library, calls the program's recvmsg, which
// CMakeLists.txt exports. There is no other place between the socket and gRPC's parser.
extern "C" ssize_t recvmsg(int fd, msghdr* message, int flags) {
  const std::shared_ptr<shoal::LimitedConnection> connection =
      (flags & MSG_PEEK) != 0 ? nullptr : shoal::Limited().Find(fd);
  if (connection != nullptr && connection->held) {
    errno = EAGAIN;
    return -1;
  }
  const ssize_t size = syscall(SYS_recvmsg, fd, message, flags);
  if (size <= 0 || connection == nullptr || shoal::Accept(connection.get(), *message, size))
    return size;
  if (!std::exchange(connection->flooded, true)) connection->limits.on_flood();
  errno = ECONNRESET;
  return -1;
}
