#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace shoal {

// Follows gRPC's messages within the DATA frames of a client's connection. gRPC 1.51 compares the
// length of a message with its limit once all of it is in memory, and knows one limit for all
// methods. The length stands before the message, though.
class MessageScanner {
 public:
  // Bytes of a message that may arrive before its length is judged: more than the window of HTTP/2
  // that a stream begins with. When more arrive, the server has accepted the stream, and so has
  // told the limit of its method.
  static constexpr uint64_t kMaxUnasked = 128 << 10;
  // Bytes of a rejected message that may still arrive: the client has sent some of them before it
  // hears of the rejection.
  static constexpr uint64_t kMaxIgnored = 16 << 20;

  // The max length of a message.
  void set_max_bytes(uint64_t bytes) { max_bytes_ = bytes; }
  // The next bytes of a stream. False: a client goes on with a message that is too long.
  bool Accept(uint32_t stream, const uint8_t* data, size_t size);
  // The stream sends no more.
  void End(uint32_t stream) { open_.erase(stream); }
  // The length of a message that is too long, once; else 0.
  uint64_t TakeTooLong();
  size_t open_messages() const { return open_.size(); }

 private:
  // Of one that has begun: first its prefix, a flag and four bytes of length.
  struct OpenMessage {
    uint32_t prefix_bytes = 0;
    uint64_t length = 0;
    uint64_t come = 0;
    bool too_long = false;
  };
  bool Check(OpenMessage* message);

  uint64_t max_bytes_ = UINT64_MAX;
  uint64_t too_long_ = 0;
  std::map<uint32_t, OpenMessage> open_;  // by stream
};

}  // namespace shoal
