#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "common/rpc/admission/message_scanner.h"

namespace shoal {

// Follows the frames of HTTP/2 that a client sends. gRPC 1.51 has no limit for one kind: it reads
// headers that go on in CONTINUATION frames for as long as they come, keeps ten bytes for each of
// theirs, and reads the beginning of an unfinished one again with every frame.
class HeaderScanner {
 public:
  // Bytes of one request's headers. gRPC refuses those above 8 KiB once it has read them.
  static constexpr size_t kMaxHeaderBytes = 64 << 10;

  // The next bytes of the connection; false from then on when headers are longer than that, or a
  // message that is too long goes on (MessageScanner).
  bool Accept(const uint8_t* data, size_t size);
  MessageScanner& messages() { return messages_; }

 private:
  void OnFrame();
  void OnPayload(const uint8_t* data, size_t size);

  size_t preface_left_ = 24;
  uint8_t head_[9];
  size_t head_size_ = 0;
  size_t payload_left_ = 0;
  uint32_t data_stream_ = 0;  // of a frame of data, the one at hand; 0: of another kind
  bool ends_stream_ = false;  // it is the last one of its stream
  MessageScanner messages_;
  bool flooded_ = false;
  size_t header_bytes_ = 0;  // of the headers that have not ended
};

struct ReceivingLimits {
  // Called once when a client sends headers, or a message that is too long, without end. Reads from
  // its connection fail with ECONNRESET from then on.
  std::function<void()> on_flood;
  // A message of so many bytes has begun, more than any stream of the connection takes. Nothing
  // more is read from the connection until ReadOn. May be null: messages have any length.
  std::function<void(uint64_t bytes)> on_too_long;
  uint64_t max_message_bytes = 0;  // until AllowMessages
};

// Limits what gRPC, and whoever else calls recvmsg, reads from this connection, for as long as the
// descriptor is that connection. The callbacks are called by the thread that reads. They are kept
// after the connection's end, until another has the descriptor, and maybe for ever. Thread-safe, as
// are the functions below, which have no effect on other descriptors.
void LimitReceiving(int fd, ReceivingLimits limits);
// A stream of the connection takes messages of at most this many bytes.
void AllowMessages(int fd, uint64_t bytes);
// Reading continues: the loop has rejected every stream that it had to.
void ReadOn(int fd);

}  // namespace shoal
