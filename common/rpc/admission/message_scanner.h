#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace shoal {

// Follows gRPC's messages within the DATA frames of a client's connection. gRPC 1.51 checks the
// length of a message only when all of it is in memory, and has one limit for all methods. This
// class checks the length at the message's beginning, where it is sent.
class MessageScanner {
 public:
  // A message is checked only once more than this has arrived. It is more than the first HTTP/2
  // window of a stream. When more arrives, the server has accepted the stream, so the limit of its
  // method is known.
  static constexpr uint64_t kMaxUnchecked = 128 << 10;
  // Max bytes of a rejected message that may still arrive. The client sends some of them before it
  // hears of the rejection.
  static constexpr uint64_t kMaxIgnored = 16 << 20;

  // The max length of a message.
  void set_max_bytes(uint64_t bytes) { max_bytes_ = bytes; }
  // Takes the next bytes of a stream. Returns false if the client continues a message that is too
  // long.
  bool Accept(uint32_t stream, const uint8_t* data, size_t size);
  // Ends a stream, which sends no more.
  void End(uint32_t stream) { open_.erase(stream); }
  // Returns the length of a message that is too long, once; else 0.
  uint64_t TakeTooLong();
  size_t open_messages() const { return open_.size(); }

 private:
  // A message that has begun. Its prefix, a flag and four bytes of length, comes first.
  struct OpenMessage {
    uint32_t prefix_bytes = 0;
    uint64_t length = 0;
    uint64_t received = 0;
    bool too_long = false;
  };
  bool Check(OpenMessage* message);

  uint64_t max_bytes_ = UINT64_MAX;
  uint64_t too_long_ = 0;
  std::map<uint32_t, OpenMessage> open_;  // by stream
};

}  // namespace shoal
