#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace google::protobuf {
class MessageLite;
}

namespace shoal {

// A run of bytes. `owner` keeps them alive and unchanged until its release, on any thread. The
// transport releases it when it no longer reads the bytes of a sent message.
struct Slice {
  const char* data = nullptr;
  size_t size = 0;
  std::shared_ptr<const void> owner;
};

// One message of a stream: a protobuf message whose last field, also on the wire, is `bytes payload
// = 15`. `fields` is the encoding of the other fields. `payload` aliases the bytes of that field. A
// type without a payload has all of its fields in `fields`.
struct Message {
  std::string fields;
  std::vector<Slice> payload;

  size_t payload_bytes() const;
};

// Returns a message of these fields and this payload. Requires that `proto` has no payload set.
Message MakeMessage(const google::protobuf::MessageLite& proto, std::vector<Slice> payload = {});

// Parses the fields. Returns false if they are not an encoding of this type; InvalidMessageError()
// of common/base/version.h is the status for that. Leaves the payload where it is.
bool ParseMessage(const Message& message, google::protobuf::MessageLite* proto);

// Copies the payload's bytes [offset, offset + size) to `out`. Requires that they exist.
void CopyPayload(const Message& message, size_t offset, void* out, size_t size);

}  // namespace shoal
