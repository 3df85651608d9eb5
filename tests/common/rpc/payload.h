#pragma once

#include <memory>
#include <string>
#include <utility>

#include "common/rpc/message.h"

namespace shoal {

// Returns a slice that owns its bytes.
inline Slice OwnedSlice(std::string bytes) {
  auto owner = std::make_shared<const std::string>(std::move(bytes));
  return {owner->data(), owner->size(), owner};
}

// Returns the bytes of all slices of the message's payload.
inline std::string PayloadOf(const Message& message) {
  std::string bytes(message.payload_bytes(), '\0');
  CopyPayload(message, 0, bytes.data(), bytes.size());
  return bytes;
}

}  // namespace shoal
