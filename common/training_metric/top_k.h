#pragma once

#include <cstdint>
#include <span>

namespace shoal {

// Whether element `of` is among the k largest, ties included: keras.ops.in_top_k. False for
// not-a-number.
inline bool IsInTopK(std::span<const float> values, int64_t of, uint64_t k) {
  if (of < 0 || of >= static_cast<int64_t>(values.size())) return false;
  uint64_t larger = 0;
  for (const float value : values) larger += !(value <= values[of]);
  return larger < k;
}

}  // namespace shoal
