#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/rpc/message.h"

namespace shoal {

// The max number of elements of a repeated field in a kind of a message.
struct FieldLimit {
  int kind = 0;   // number of the field that holds the kind, in the message
  int field = 0;  // number of the repeated field, in the kind
  uint64_t max = std::numeric_limits<uint64_t>::max();
  bool packed = false;  // a field of varints, which share one record on the wire
};

// Parses the fields like ParseMessage(), but checks `limits` first. This bounds the memory, because
// parsed elements can take a hundred times the memory of their encoding. kResourceExhausted: the
// fields exceed a limit; the text has the number of elements. kInvalidArgument: the fields are not
// an encoding of this type (InvalidMessageError). Calls `peer`, for the name of the sender, only if
// there is an error.
absl::Status ParseWithin(std::span<const FieldLimit> limits, const Message& message,
                         absl::FunctionRef<std::string()> peer,
                         google::protobuf::MessageLite* proto);

}  // namespace shoal
