// Whole numbers from -127 to 127 times a scale, in blocks:
//
//   encoding = block*                       the last block may be shorter
//   block = scale, code*                    little-endian float32, then a signed byte per value
//   scale = the largest magnitude / 127     without its 7 last bits, so that 127 scale is exact,
//                                           and decoding and encoding again changes nothing
//
// The error is up to the block's largest magnitude / 254. Blocks below 1.5e-36 decode to zeros,
// with an error up to that. A block with a non-finite value decodes to not-a-number.
#include <cmath>

#include "common/compression/blocks.h"
#include "common/compression/codec.h"
#include "common/json/json_object.h"

namespace shoal {
namespace {

constexpr int kLargestCode = 127;
// Adding it rounds to whole numbers, to nearest, ties to even, in the last bits of the sum.
constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23

uint32_t ScaleBits(uint32_t largest_magnitude) {
  if (largest_magnitude >= kInfinityBits) return kBrokenScaleBits;
  const float scale = std::bit_cast<float>(largest_magnitude) / kLargestCode;
  if (scale < std::numeric_limits<float>::min()) return 0;
  return std::bit_cast<uint32_t>(scale) & ~uint32_t{0x7f};
}

SHOAL_VECTORIZED
void EncodeInt8(const float* values, size_t size, char* out) {
  for (size_t begin = 0; begin < size; begin += kBlockValues) {
    const size_t count = std::min(kBlockValues, size - begin);
    const float* const block = values + begin;
    const uint32_t scale = ScaleBits(LargestMagnitudeBits(block, count));
    StoreScale(scale, out);
    int8_t* const codes = reinterpret_cast<int8_t*>(out + kScaleBytes);
    out += kScaleBytes + count;
    if (scale == 0 || scale == kBrokenScaleBits) {
      std::memset(codes, 0, count);
      continue;
    }
    const float inverse = 1 / std::bit_cast<float>(scale);
    SHOAL_INDEPENDENT
    for (size_t i = 0; i < count; ++i) {
      codes[i] = static_cast<int8_t>(std::bit_cast<int32_t>(block[i] * inverse + kRounder));
    }
  }
}

// Returns false if no encoder writes these bytes.
SHOAL_VECTORIZED
bool DecodeInt8(const char* bytes, float* out, size_t size) {
  constexpr float kLargestScale = std::numeric_limits<float>::max() / kLargestCode;
  for (size_t begin = 0; begin < size; begin += kBlockValues) {
    const size_t count = std::min(kBlockValues, size - begin);
    const uint32_t bits = LoadScale(bytes);
    if (!PlausibleScale(bits, kLargestScale)) return false;
    const float scale = std::bit_cast<float>(bits);
    const int8_t* const codes = reinterpret_cast<const int8_t*>(bytes + kScaleBytes);
    float* const block = out + begin;
    bytes += kScaleBytes + count;
    int beyond = 0;
    SHOAL_INDEPENDENT
    for (size_t i = 0; i < count; ++i) {
      beyond |= codes[i] < -kLargestCode;
      block[i] = static_cast<float>(codes[i]) * scale;
    }
    if (beyond != 0) return false;
  }
  return true;
}

class Int8 : public Codec {
 public:
  Int8() : Codec("int8") {}

  size_t EncodedBytes(size_t count) const override {
    return count + (count + kBlockValues - 1) / kBlockValues * kScaleBytes;
  }

  void Encode(std::span<const float> values, char* out) const override {
    EncodeInt8(values.data(), values.size(), out);
  }

  absl::Status Decode(std::span<const char> bytes, std::span<float> out) const override {
    const absl::Status size = CheckSize(bytes.size(), out.size());
    if (!size.ok()) return size;
    if (DecodeInt8(bytes.data(), out.data(), out.size())) return absl::OkStatus();
    return Damaged("invalid scale or code");
  }
};

}  // namespace

std::unique_ptr<const Codec> MakeInt8(JsonObject&) { return std::make_unique<Int8>(); }

}  // namespace shoal
