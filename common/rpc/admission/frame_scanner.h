#pragma once

#include <cstddef>
#include <cstdint>

#include "common/rpc/admission/message_scanner.h"

namespace shoal {

// Follows the HTTP/2 frames that a client sends. gRPC 1.51 has no limit for CONTINUATION frames of
// headers. It reads them without end, keeps ten bytes for each of their bytes, and reads the
// beginning of an unfinished header again with every frame. Not thread-safe.
class FrameScanner {
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

}  // namespace shoal
