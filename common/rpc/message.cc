#include "common/rpc/message.h"

#include <google/protobuf/message_lite.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"

namespace shoal {

size_t Message::payload_bytes() const {
  size_t bytes = 0;
  for (const Slice& slice : payload) bytes += slice.size;
  return bytes;
}

Message MakeMessage(const google::protobuf::MessageLite& proto, std::vector<Slice> payload) {
  return Message{proto.SerializeAsString(), std::move(payload)};
}

bool ParseMessage(const Message& message, google::protobuf::MessageLite* proto) {
  return proto->ParseFromString(message.fields);
}

void CopyPayload(const Message& message, size_t offset, void* out, size_t size) {
  char* to = static_cast<char*>(out);
  for (const Slice& slice : message.payload) {
    if (size == 0) return;
    if (offset >= slice.size) {
      offset -= slice.size;
      continue;
    }
    const size_t run = std::min(size, slice.size - offset);
    std::memcpy(to, slice.data + offset, run);
    to += run;
    size -= run;
    offset = 0;
  }
  SHOAL_CHECK(size == 0, "the payload ends ", size, " bytes early");
}

}  // namespace shoal
