#include "common/archive/hdf5_element.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/archive/hdf5_fields.h"

namespace shoal {
namespace {

float FloatOfHalf(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = half >> 10 & 0x1F;
  const uint32_t mantissa = half & 0x3FF;
  if (exponent == 0) {
    const float value = static_cast<float>(mantissa) / (1 << 24);
    return sign != 0 ? -value : value;
  }
  const uint32_t bits =
      sign | (exponent == 31 ? 0xFFu : exponent + 127 - 15) << 23 | mantissa << 13;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

template <typename T>
float Converted(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return static_cast<float>(value);
}

}  // namespace

Hdf5Element ReadHdf5Element(std::string_view data) {
  Hdf5Fields fields(data);
  const auto class_and_version = static_cast<uint8_t>(fields.Take(1));
  const uint64_t bits = fields.Take(3);
  Hdf5Element type{.size = fields.Take(4)};
  const uint64_t bit_offset = fields.Take(2);
  const uint64_t precision = fields.Take(2);
  const bool whole = bit_offset == 0 && type.size <= 8 && precision == 8 * type.size;
  if (!fields.ok() || !whole) return type;
  if ((class_and_version & 0x0F) == 0) {
    const bool big_endian = bits & 1, is_signed = bits & 8;
    if (!big_endian && (type.size == 4 || type.size == 8))
      type.dtype = absl::StrCat(is_signed ? "I" : "U", precision);
    return type;
  }
  if ((class_and_version & 0x0F) != 1 || (bits & 0x41) != 0) return type;
  // Exponent's location and size, mantissa's location and size.
  const uint64_t layout = fields.Take(4);
  const auto is = [&](uint64_t size, uint64_t mantissa, uint64_t exponent) {
    return type.size == size && layout == (mantissa | exponent << 8 | mantissa << 24);
  };
  if (is(2, 10, 5)) type.dtype = "F16";
  if (is(4, 23, 8)) type.dtype = "F32";
  if (is(8, 52, 11)) type.dtype = "F64";
  return type;
}

float Hdf5ToFloat(const std::string& dtype, const char* from) {
  if (dtype == "F64") return Converted<double>(from);
  if (dtype == "I32") return Converted<int32_t>(from);
  if (dtype == "I64") return Converted<int64_t>(from);
  if (dtype == "U32") return Converted<uint32_t>(from);
  if (dtype == "U64") return Converted<uint64_t>(from);
  uint16_t half;
  std::memcpy(&half, from, sizeof(half));
  return FloatOfHalf(half);
}

}  // namespace shoal
