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

// A run of bytes that somebody else owns; `owner` keeps them alive and unchanged until it is
// released. For sending, it is released when the transport will not read the bytes any more. May be
// released on any thread.
struct Slice {
  const char* data = nullptr;
  size_t size = 0;
  std::shared_ptr<const void> owner;
};

// One message of a stream: a protobuf message whose last field, on the wire too, is `bytes payload
// = 15`. `fields` is the encoding of the other fields, `payload` the bytes of that one, without a
// copy. A message type without a payload has everything in `fields`.
struct Message {
  std::string fields;
  std::vector<Slice> payload;

  size_t payload_bytes() const;
};

// A message of these fields (payload not set in `proto`) and this payload.
Message MakeMessage(const google::protobuf::MessageLite& proto, std::vector<Slice> payload = {});

// Reads the fields; false when they are not an encoding of this type. The payload stays where it
// is.
bool ParseMessage(const Message& message, google::protobuf::MessageLite* proto);

// Copies the payload's bytes [offset, offset + size) to `out`; they must exist.
void CopyPayload(const Message& message, size_t offset, void* out, size_t size);

}  // namespace shoal
