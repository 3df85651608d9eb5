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
// 0x7a is the tag of field 15, length-delimited: the payload, which is last. A field 15 of another
// wire type (a number) is a field like the others, and so is anything a peer of another version
// adds before.

// What comes before the payload's bytes: the fields, then the payload's tag and size unless it is
// empty.
std::string EncodeHead(const Message& message);

// Bytes of the whole message on the wire.
size_t EncodedSize(const Message& message);

// Splits one received message. The payload's slices alias `bytes` and share their owners; the
// fields are copied. INVALID_ARGUMENT, naming the offset, when the bytes are not such a message.
absl::StatusOr<Message> DecodeMessage(std::span<const Slice> bytes);

}  // namespace shoal
