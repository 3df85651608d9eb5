#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "common/rpc/admission/message_scanner.h"

namespace shoal {

// Follows the HTTP/2 frames that a client sends. gRPC 1.51 has no limit for CONTINUATION frames of
// headers. It reads them for as long as they come, keeps ten bytes for each of their bytes, and
// reads the beginning of an unfinished header again with every frame.
class HeaderScanner {
 public:
  // The max size of one request's headers. gRPC rejects headers above 8 KiB once it has read them.
  static constexpr size_t kMaxHeaderBytes = 64 << 10;

  // Takes the next bytes of the connection. Returns false, from then on always, if headers are
  // longer than the max, or a message that is too long continues (MessageScanner).
  bool Accept(const uint8_t* data, size_t size);
  MessageScanner& messages() { return messages_; }

 private:
  void OnFrame();
  void OnPayload(const uint8_t* data, size_t size);

  size_t preface_left_ = 24;
  uint8_t head_[9];
  size_t head_size_ = 0;
  size_t payload_left_ = 0;
  uint32_t data_stream_ = 0;  // stream of the current DATA frame; 0: another kind of frame
  bool ends_stream_ = false;  // the current frame is the last one of its stream
  MessageScanner messages_;
  bool flooded_ = false;
  size_t header_bytes_ = 0;  // of the unfinished headers
};

struct ReceivingLimits {
  // Called once when a client sends headers, or a message that is too long, without end. From then
  // on reads from its connection fail with ECONNRESET.
  std::function<void()> on_flood;
  // Called when a message of this size begins and no stream of the connection accepts it. Reads
  // from the connection then stop until ReadOn(). Null: messages may have any length.
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
void ReadOn(int fd);

}  // namespace shoal
