#pragma once

#include <cstddef>
#include <cstring>
#include <span>

#include "common/rpc/message.h"

namespace shoal {

// Calls `apply(offset, floats)` for consecutive runs of the floats in the payload of a message. The
// runs are not copied and may have any alignment. A float that is split between two slices is
// assembled first and forms its own run. Requires a whole number of floats.
template <typename Apply>
void ForEachRun(const Message& message, Apply apply) {
  size_t offset = 0;  // floats
  float split = 0;
  size_t split_bytes = 0;  // bytes of `split` seen so far
  for (const Slice& slice : message.payload) {
    const char* data = slice.data;
    size_t size = slice.size;
    while (split_bytes != 0 && size != 0) {
      reinterpret_cast<char*>(&split)[split_bytes++] = *data++;
      --size;
      if (split_bytes == sizeof(float)) {
        apply(offset++, std::span<const float>(&split, 1));
        split_bytes = 0;
      }
    }
    const size_t count = size / sizeof(float);
    if (count != 0) {
      apply(offset, std::span<const float>(reinterpret_cast<const float*>(data), count));
      offset += count;
    }
    const size_t rest = size % sizeof(float);
    if (rest != 0) {
      std::memcpy(&split, data + count * sizeof(float), rest);
      split_bytes = rest;
    }
  }
}

}  // namespace shoal
