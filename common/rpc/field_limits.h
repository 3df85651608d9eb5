#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "absl/status/status.h"
#include "common/rpc/message.h"

namespace shoal {

// The most elements that a repeated field of a message's kind may have.
struct FieldLimit {
  int kind = 0;   // number of the field that holds the kind, in the message
  int field = 0;  // number of the repeated field, in the kind
  uint64_t most = std::numeric_limits<uint64_t>::max();
  bool packed = false;  // a field of varints, many of which share one record on the wire
};

// Reads the fields as ParseMessage does, unless one of `limits` is exceeded: the parsed elements
// can take a hundred times the memory of their encoding, so they are counted before.
// kResourceExhausted says how many there are, kInvalidArgument that the fields are no encoding of
// this type.
absl::Status ParseWithin(std::span<const FieldLimit> limits, const Message& message,
                         google::protobuf::MessageLite* proto);

}  // namespace shoal
