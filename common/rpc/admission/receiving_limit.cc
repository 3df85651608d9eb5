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
#include "common/rpc/admission/socket_mark.h"

namespace shoal {
namespace {

// RFC 9113, sections 6.1, 6.2, 6.4 and 6.10.
constexpr uint8_t kData = 0;
constexpr uint8_t kHeaders = 1;
constexpr uint8_t kRstStream = 3;
constexpr uint8_t kContinuation = 9;
constexpr uint8_t kEndStream = 1;
constexpr uint8_t kEndHeaders = 4;

struct LimitedConnection {
  LimitedConnection(int fd, ReceivingLimits limits)
      : socket(fd), limits(std::move(limits)), max_message_bytes(this->limits.max_message_bytes) {}

  const SocketMark socket;
  const ReceivingLimits limits;
  HeaderScanner scanner;
  bool flooded = false;
  std::atomic<uint64_t> max_message_bytes;
  std::atomic<bool> held = false;  // reads stop until ReadOn()
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

bool HeaderScanner::Accept(const uint8_t* data, size_t size) {
  while (size > 0 && !flooded_) {
    size_t taken = 1;
    if (preface_left_ > 0) {
      taken = std::min(preface_left_, size);
      preface_left_ -= taken;
    } else if (payload_left_ > 0) {
      taken = std::min(payload_left_, size);
      payload_left_ -= taken;
      OnPayload(data, taken);
    } else {
      head_[head_size_++] = *data;
      if (head_size_ == sizeof(head_)) OnFrame();
    }
    data += taken;
    size -= taken;
  }
  return !flooded_;
}

void HeaderScanner::OnPayload(const uint8_t* data, size_t size) {
  if (data_stream_ == 0) return;
  if (!messages_.Accept(data_stream_, data, size)) flooded_ = true;
  if (payload_left_ == 0 && ends_stream_) messages_.End(data_stream_);
}

void HeaderScanner::OnFrame() {
  head_size_ = 0;
  payload_left_ = (size_t{head_[0]} << 16) + (size_t{head_[1]} << 8) + head_[2];
  const uint8_t type = head_[3];
  const uint8_t flags = head_[4];
  const uint32_t stream =
      (uint32_t{head_[5]} << 24 | uint32_t{head_[6]} << 16 | uint32_t{head_[7]} << 8 | head_[8]) &
      0x7fffffff;
  ends_stream_ = (flags & kEndStream) != 0;
  // gRPC rejects data with other flags.
  data_stream_ = type == kData && (flags & ~kEndStream) == 0 ? stream : 0;
  if (type == kRstStream || (ends_stream_ && type == kData && payload_left_ == 0))
    messages_.End(stream);
  if (type != kHeaders && type != kContinuation) return;
  if (type == kHeaders) header_bytes_ = 0;
  header_bytes_ += sizeof(head_) + payload_left_;
  const bool ended = (flags & kEndHeaders) != 0;
  if (header_bytes_ > kMaxHeaderBytes) flooded_ = true;
  if (ended) header_bytes_ = 0;
}

void LimitReceiving(int fd, ReceivingLimits limits) { Limited().Add(fd, std::move(limits)); }

void AllowMessages(int fd, uint64_t bytes) {
  const std::shared_ptr<LimitedConnection> connection = Limited().Find(fd);
  if (connection != nullptr && connection->max_message_bytes < bytes)
    connection->max_message_bytes = bytes;
}

void ReadOn(int fd) {
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
