// The upper half of a float: 8 bits of exponent, 7 of mantissa, rounded to nearest, ties to even.
// Relative error up to 2^-8; absolute error up to 2^-134 for denormal values. Infinity and
// not-a-number stay the same; a finite value stays finite.
#include <bit>
#include <cstdint>

#include "common/compression/codec.h"
#include "common/json/json_object.h"
#include "common/optimizer/vectorize.h"

namespace shoal {
namespace {

typedef uint16_t UnalignedHalf __attribute__((aligned(1), may_alias));

SHOAL_VECTORIZED
void EncodeBf16(const float* values, size_t size, UnalignedHalf* out) {
  SHOAL_INDEPENDENT
  for (size_t i = 0; i < size; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(values[i]);
    const uint32_t magnitude = bits & 0x7fffffff;
    const auto rounded = static_cast<int32_t>((magnitude + 0x7fff + ((magnitude >> 16) & 1)) >> 16);
    const int32_t finite = rounded < 0x7f7f ? rounded : 0x7f7f;
    const auto ordered = static_cast<int32_t>(magnitude);
    const int32_t broken = (ordered >> 16) | (ordered > 0x7f800000 ? 0x40 : 0);
    const int32_t half = ordered < 0x7f800000 ? finite : broken;
    out[i] = static_cast<uint16_t>(half | static_cast<int32_t>((bits >> 16) & 0x8000));
  }
}

SHOAL_VECTORIZED
void DecodeBf16(const UnalignedHalf* bytes, size_t size, float* out) {
  SHOAL_INDEPENDENT
  for (size_t i = 0; i < size; ++i) {
    out[i] = std::bit_cast<float>(static_cast<uint32_t>(bytes[i]) << 16);
  }
}

class Bf16 : public Codec {
 public:
  Bf16() : Codec("bf16") {}

  size_t EncodedBytes(size_t count) const override { return count * sizeof(uint16_t); }

  void Encode(std::span<const float> values, char* out) const override {
    EncodeBf16(values.data(), values.size(), reinterpret_cast<UnalignedHalf*>(out));
  }

  absl::Status Decode(std::span<const char> bytes, std::span<float> out) const override {
    const absl::Status size = CheckSize(bytes.size(), out.size());
    if (!size.ok()) return size;
    DecodeBf16(reinterpret_cast<const UnalignedHalf*>(bytes.data()), out.size(), out.data());
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<const Codec> MakeBf16(JsonObject&) { return std::make_unique<Bf16>(); }

}  // namespace shoal
