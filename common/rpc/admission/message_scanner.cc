#include "common/rpc/admission/message_scanner.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace shoal {
namespace {

constexpr uint32_t kPrefixBytes = 5;
// Max open messages. A connection has fewer streams, but messages of streams that the server has
// ended stay until this number is exceeded.
constexpr size_t kMaxOpen = 64;

}  // namespace

bool MessageScanner::Accept(uint32_t stream, const uint8_t* data, size_t size) {
  while (size > 0) {
    OpenMessage& message = open_[stream];
    if (open_.size() > kMaxOpen)
      open_.erase(open_.begin()->first == stream ? std::next(open_.begin()) : open_.begin());
    if (message.prefix_bytes < kPrefixBytes) {
      // The flag comes first. The four bytes of the length then shift it out.
      message.length = (message.length << 8 | *data) & 0xffffffff;
      ++message.prefix_bytes;
      ++data;
      --size;
    } else {
      const auto here = std::min<uint64_t>(message.length - message.received, size);
      message.received += here;
      data += here;
      size -= here;
      if (!Check(&message)) return false;
    }
    if (message.prefix_bytes == kPrefixBytes && message.received == message.length)
      open_.erase(stream);
  }
  return true;
}

bool MessageScanner::Check(OpenMessage* message) {
  if (message->length <= max_bytes_ || message->received <= kMaxUnchecked) return true;
  if (!std::exchange(message->too_long, true)) too_long_ = message->length;
  return message->received <= kMaxUnchecked + kMaxIgnored;
}

uint64_t MessageScanner::TakeTooLong() { return std::exchange(too_long_, 0); }

}  // namespace shoal
