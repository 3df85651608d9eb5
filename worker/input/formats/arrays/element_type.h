#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace shoal {

// A number as a data file stores it.
enum class ElementType { kU8, kI8, kI16, kI32, kI64, kF32, kF64 };

// Element type and byte order together.
struct ElementFormat {
  ElementType type = ElementType::kU8;
  std::endian order = std::endian::little;
};

size_t ElementBytes(ElementType type);
// "u8", "f32", …
std::string ElementTypeName(ElementType type);

// Converts out.size() numbers at `stored`, with any alignment, to float32. Rounds numbers that
// float32 does not hold exactly (integers beyond 2^24). Requires that `stored` and `out` do not
// overlap.
void ConvertToFloat(ElementFormat format, const char* stored, std::span<float> out);

}  // namespace shoal
