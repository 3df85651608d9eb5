#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>

#include "common/optimizer/vectorize.h"

namespace shoal {

// What codecs have in common that write values in blocks, each with a scale of its own before it,
// so that a large value costs no more than its neighbours their digits.
constexpr size_t kBlockValues = 256;
constexpr size_t kScaleBytes = sizeof(float);

// The bits of the largest magnitude among `size` values: ordered as the magnitudes are, infinity
// above all numbers, what is not a number above that.
inline uint32_t LargestMagnitudeBits(const float* values, size_t size) {
  int32_t largest = 0;
  for (size_t i = 0; i < size; ++i) {
    const int32_t magnitude = std::bit_cast<int32_t>(values[i]) & 0x7fffffff;
    largest = magnitude > largest ? magnitude : largest;
  }
  return static_cast<uint32_t>(largest);
}

// Of infinity; what is not less is no finite magnitude.
constexpr uint32_t kInfinityBits = 0x7f800000;

// A block whose values are not all finite has this scale, and comes back as not-a-number: what a
// step has broken is to be seen, and there is nothing to measure the others with.
constexpr uint32_t kBrokenScaleBits = 0x7fc00000;

inline void StoreScale(uint32_t bits, char* out) { std::memcpy(out, &bits, sizeof(bits)); }

inline uint32_t LoadScale(const char* bytes) {
  uint32_t bits;
  std::memcpy(&bits, bytes, sizeof(bits));
  return bits;
}

// Whether an encoder writes such a scale: broken, 0, or a normal number up to `largest`.
inline bool PlausibleScale(uint32_t bits, float largest) {
  return bits == kBrokenScaleBits || bits == 0 ||
         (bits >= std::bit_cast<uint32_t>(std::numeric_limits<float>::min()) &&
          bits <= std::bit_cast<uint32_t>(largest));
}

}  // namespace shoal
