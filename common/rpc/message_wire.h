#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "common/rpc/message.h"

namespace shoal {

// A Message on the wire is the encoding of a protobuf message:
//
//   message = field* [ 0x7a varint(size) byte{size} ]
//
// 0x7a is the tag of field 15, length-delimited: the payload, which must be last. A field 15 of
// another wire type (a number) is an ordinary field, and so is a field of another version before
// the payload.

// Returns the bytes before the payload's bytes: the fields, then the payload's tag and size unless
// it is empty.
std::string EncodeHead(const Message& message);

// Returns the size of the whole message on the wire, in bytes.
size_t EncodedSize(const Message& message);

// Splits one received message. The payload's slices alias `bytes` and share their owners; the
// fields are copied. INVALID_ARGUMENT with the offset if the bytes are not such a message.
absl::StatusOr<Message> DecodeMessage(std::span<const Slice> bytes);

}  // namespace shoal
