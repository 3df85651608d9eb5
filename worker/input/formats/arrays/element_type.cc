#include "worker/input/formats/arrays/element_type.h"

#include <array>
#include <cstring>

namespace shoal {
namespace {

static_assert(std::endian::native == std::endian::little,
              "stored bytes are swapped for little-endian");

struct TypeEntry {
  const char* name;
  size_t bytes;
};
constexpr std::array<TypeEntry, 7> kTypes = {
    {{"u8", 1}, {"i8", 1}, {"i16", 2}, {"i32", 4}, {"i64", 8}, {"f32", 4}, {"f64", 8}}};

uint8_t ByteSwap(uint8_t bits) { return bits; }
uint16_t ByteSwap(uint16_t bits) { return __builtin_bswap16(bits); }
uint32_t ByteSwap(uint32_t bits) { return __builtin_bswap32(bits); }
uint64_t ByteSwap(uint64_t bits) { return __builtin_bswap64(bits); }

// Two plain loops that the compiler vectorises. `Bits` is the unsigned integer with the width of
// `Number`.
template <typename Number, typename Bits>
void Convert(bool swapped, const char* __restrict stored, float* __restrict out, size_t count) {
  static_assert(sizeof(Number) == sizeof(Bits));
  if (swapped) {
    for (size_t i = 0; i < count; ++i) {
      Bits bits;
      std::memcpy(&bits, stored + i * sizeof(Bits), sizeof(Bits));
      out[i] = static_cast<float>(std::bit_cast<Number>(ByteSwap(bits)));
    }
  } else {
    for (size_t i = 0; i < count; ++i) {
      Number number;
      std::memcpy(&number, stored + i * sizeof(Number), sizeof(Number));
      out[i] = static_cast<float>(number);
    }
  }
}

}  // namespace

size_t ElementBytes(ElementType type) { return kTypes[static_cast<size_t>(type)].bytes; }

std::string ElementTypeName(ElementType type) { return kTypes[static_cast<size_t>(type)].name; }

void ConvertToFloat(ElementFormat format, const char* stored, std::span<float> out) {
  const bool swapped = format.order != std::endian::native;
  switch (format.type) {
    case ElementType::kU8:
      return Convert<uint8_t, uint8_t>(swapped, stored, out.data(), out.size());
    case ElementType::kI8:
      return Convert<int8_t, uint8_t>(swapped, stored, out.data(), out.size());
    case ElementType::kI16:
      return Convert<int16_t, uint16_t>(swapped, stored, out.data(), out.size());
    case ElementType::kI32:
      return Convert<int32_t, uint32_t>(swapped, stored, out.data(), out.size());
    case ElementType::kI64:
      return Convert<int64_t, uint64_t>(swapped, stored, out.data(), out.size());
    case ElementType::kF32:
      return Convert<float, uint32_t>(swapped, stored, out.data(), out.size());
    case ElementType::kF64:
      return Convert<double, uint64_t>(swapped, stored, out.data(), out.size());
  }
}

}  // namespace shoal
