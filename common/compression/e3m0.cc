// Four bits per value, a sign and three bits of exponent, in blocks: 0 and 2^-6 to 2^0 times the
// block's largest magnitude, as in "Streaming DiLoCo" (arXiv:2501.18512), for differences.
//
//   encoding = block*                         the last block may be shorter
//   block = scale, pair*                      little-endian float32, then (count + 1) / 2 bytes
//   pair j = code j | code (j + half) << 4    half = (count + 1) / 2; the last may have only one
//   code = sign << 3 | exponent               0: zero; e: 2^(e - 7)
//
// Encodes to the nearest code. The error is up to a third of the value. For values below the
// smallest code, 1/64 of the largest magnitude, it is up to 1/128 of the largest. Blocks below
// 1.2e-38 decode to zeros, with an error up to that. A block with a non-finite value decodes to
// not-a-number.
#include "common/compression/blocks.h"
#include "common/compression/codec.h"
#include "common/json/json_object.h"

namespace shoal {
namespace {

constexpr size_t kHalfBlock = kBlockValues / 2;

SHOAL_VECTORIZED
void EncodeE3m0(const float* values, size_t size, char* out) {
  for (size_t begin = 0; begin < size; begin += kBlockValues) {
    const size_t count = std::min(kBlockValues, size - begin);
    const size_t half = (count + 1) / 2;
    const float* const block = values + begin;
    uint32_t scale = LargestMagnitudeBits(block, count);
    if (scale >= kInfinityBits) scale = kBrokenScaleBits;
    if (scale < std::bit_cast<uint32_t>(std::numeric_limits<float>::min())) scale = 0;
    StoreScale(scale, out);
    uint8_t* const pairs = reinterpret_cast<uint8_t*>(out + kScaleBytes);
    out += kScaleBytes + half;
    if (scale == 0 || scale == kBrokenScaleBits) {
      std::memset(pairs, 0, half);
      continue;
    }
    const float largest = std::bit_cast<float>(scale);
    uint8_t codes[kBlockValues + 1];
    codes[count] = 0;  // for a pair with only one value
    SHOAL_INDEPENDENT
    for (size_t i = 0; i < count; ++i) {
      const int32_t bits = std::bit_cast<int32_t>(block[i] / largest);
      const int32_t magnitude = bits & 0x7fffffff;
      // Adds half of an exponent step: from 1.5 times a power of two on, rounds up to the next.
      const int32_t exponent = ((magnitude + (1 << 22)) >> 23) - 120;
      const int32_t smallest = magnitude >= (120 << 23) ? 1 : 0;  // 2^-7: half of 2^-6
      const int32_t code = exponent > smallest ? exponent : smallest;
      const int32_t sign = (bits >> 28) & 8;
      codes[i] = static_cast<uint8_t>(code | (code != 0 ? sign : 0));
    }
    SHOAL_INDEPENDENT
    for (size_t j = 0; j < half; ++j) {
      pairs[j] = static_cast<uint8_t>(codes[j] | (codes[j + half] << 4));
    }
  }
}

inline float Decoded(int32_t code, float scale) {
  const int32_t exponent = code & 7;
  const int32_t bits = exponent != 0 ? (exponent + 120) << 23 : 0;
  return std::bit_cast<float>(bits | ((code & 8) << 28)) * scale;
}

// Returns false if no encoder writes these bytes.
SHOAL_VECTORIZED
bool DecodeE3m0(const char* bytes, float* out, size_t size) {
  for (size_t begin = 0; begin < size; begin += kBlockValues) {
    const size_t count = std::min(kBlockValues, size - begin);
    const size_t half = (count + 1) / 2;
    const uint32_t bits = LoadScale(bytes);
    if (!PlausibleScale(bits, std::numeric_limits<float>::max())) return false;
    const float scale = std::bit_cast<float>(bits);
    const uint8_t* const pairs = reinterpret_cast<const uint8_t*>(bytes + kScaleBytes);
    float* const block = out + begin;
    bytes += kScaleBytes + half;
    SHOAL_INDEPENDENT
    for (size_t j = 0; j < half; ++j) block[j] = Decoded(pairs[j] & 15, scale);
    SHOAL_INDEPENDENT
    for (size_t j = half; j < count; ++j) block[j] = Decoded(pairs[j - half] >> 4, scale);
    if (2 * half > count && (pairs[half - 1] >> 4) != 0) return false;
  }
  return true;
}

class E3m0 : public Codec {
 public:
  E3m0() : Codec("e3m0") {}

  size_t EncodedBytes(size_t count) const override {
    const size_t rest = count % kBlockValues;
    return count / kBlockValues * (kScaleBytes + kHalfBlock) +
           (rest != 0 ? kScaleBytes + (rest + 1) / 2 : 0);
  }

  void Encode(std::span<const float> values, char* out) const override {
    EncodeE3m0(values.data(), values.size(), out);
  }

  absl::Status Decode(std::span<const char> bytes, std::span<float> out) const override {
    const absl::Status size = CheckSize(bytes.size(), out.size());
    if (!size.ok()) return size;
    if (DecodeE3m0(bytes.data(), out.data(), out.size())) return absl::OkStatus();
    return Damaged("invalid scale or code");
  }
};

}  // namespace

std::unique_ptr<const Codec> MakeE3m0(JsonObject&) { return std::make_unique<E3m0>(); }

}  // namespace shoal
