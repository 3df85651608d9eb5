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

// The common parts of codecs that write values in blocks. Each block begins with its own scale, so
// that a large value costs only its neighbours their digits.
constexpr size_t kBlockValues = 256;
constexpr size_t kScaleBytes = sizeof(float);

// The bits of the largest magnitude among `size` values. They are ordered like the magnitudes:
// infinity is above all numbers, and not-a-number is above infinity.
inline uint32_t LargestMagnitudeBits(const float* values, size_t size) {
  int32_t largest = 0;
  for (size_t i = 0; i < size; ++i) {
    const int32_t magnitude = std::bit_cast<int32_t>(values[i]) & 0x7fffffff;
    largest = magnitude > largest ? magnitude : largest;
  }
  return static_cast<uint32_t>(largest);
}

// The bits of infinity; only finite magnitudes are below.
constexpr uint32_t kInfinityBits = 0x7f800000;

// The scale of a block with a non-finite value. The whole block decodes to not-a-number. This shows
// that a step is broken, and there is no scale for the other values anyway.
constexpr uint32_t kBrokenScaleBits = 0x7fc00000;

inline void StoreScale(uint32_t bits, char* out) { std::memcpy(out, &bits, sizeof(bits)); }

inline uint32_t LoadScale(const char* bytes) {
  uint32_t bits;
  std::memcpy(&bits, bytes, sizeof(bits));
  return bits;
}

// Whether an encoder writes this scale: broken, 0, or a normal number up to `largest`.
inline bool PlausibleScale(uint32_t bits, float largest) {
  return bits == kBrokenScaleBits || bits == 0 ||
         (bits >= std::bit_cast<uint32_t>(std::numeric_limits<float>::min()) &&
          bits <= std::bit_cast<uint32_t>(largest));
}

}  // namespace shoal
