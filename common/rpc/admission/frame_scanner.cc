#include "common/rpc/admission/frame_scanner.h"

#include <algorithm>

namespace shoal {
namespace {

// RFC 9113, sections 6.1, 6.2, 6.4 and 6.10.
constexpr uint8_t kData = 0;
constexpr uint8_t kHeaders = 1;
constexpr uint8_t kRstStream = 3;
constexpr uint8_t kContinuation = 9;
constexpr uint8_t kEndStream = 1;
constexpr uint8_t kEndHeaders = 4;

}  // namespace

bool FrameScanner::Accept(const uint8_t* data, size_t size) {
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

void FrameScanner::OnPayload(const uint8_t* data, size_t size) {
  if (data_stream_ == 0) return;
  if (!messages_.Accept(data_stream_, data, size)) flooded_ = true;
  if (payload_left_ == 0 && ends_stream_) messages_.End(data_stream_);
}

void FrameScanner::OnFrame() {
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

}  // namespace shoal
