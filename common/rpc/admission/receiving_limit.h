#pragma once

#include <cstdint>
#include <functional>

namespace shoal {

struct ReceivingLimits {
  // Called once when a client sends headers, or a message that is too long, without end. From then
  // on reads from its connection fail with ECONNRESET.
  std::function<void()> on_flood;
  // Called when a message of this size begins and no stream of the connection accepts it. Reads
  // from the connection then stop until ResumeReading(). Null: messages may have any length.
  std::function<void(uint64_t bytes)> on_too_long;
  uint64_t max_message_bytes = 0;  // before AllowMessages()
};

// Limits what gRPC, or any other caller of recvmsg, reads from this connection, while the
// descriptor belongs to the connection. The reading thread calls the callbacks. They live on after
// the connection's end, until another connection has the descriptor, perhaps for ever. This
// function and those below are thread-safe. Those below have no effect on other descriptors.
void LimitReceiving(int fd, ReceivingLimits limits);
// Allows messages of at most this many bytes, because a stream of the connection accepts them.
void AllowMessages(int fd, uint64_t bytes);
// Continues reading. Call it when the loop has rejected all streams that must not go on.
void ResumeReading(int fd);

}  // namespace shoal
