#include "worker/input/formats/arrays/idx_format.h"

#include <optional>

#include "absl/strings/str_cat.h"

namespace shoal {
namespace {

std::optional<ElementType> TypeOfCode(uint8_t code) {
  switch (code) {
    case 0x08:
      return ElementType::kU8;
    case 0x09:
      return ElementType::kI8;
    case 0x0B:
      return ElementType::kI16;
    case 0x0C:
      return ElementType::kI32;
    case 0x0D:
      return ElementType::kF32;
    case 0x0E:
      return ElementType::kF64;
    default:
      return std::nullopt;
  }
}

}  // namespace

bool IsIdx(std::string_view head) { return head.substr(0, 2) == std::string_view("\0\0", 2); }

absl::StatusOr<ArrayHeader> ParseIdxHeader(std::string_view head) {
  const auto byte = [head](size_t i) { return static_cast<uint8_t>(head[i]); };
  if (head.size() < 4) {
    return absl::DataLossError(
        absl::StrCat("ends at byte ", head.size(), " in the 4 bytes that begin an IDX file"));
  }
  const std::optional<ElementType> type = TypeOfCode(byte(2));
  if (!type.has_value()) {
    return absl::DataLossError(absl::StrCat(
        "at byte 2: IDX type 0x", absl::Hex(byte(2), absl::kZeroPad2),
        "; expected 0x08 (u8), 0x09 (i8), 0x0b (i16), 0x0c (i32), 0x0d (f32) or 0x0e (f64)"));
  }
  const size_t axes = byte(3);
  const size_t header_bytes = 4 + 4 * axes;
  if (head.size() < header_bytes) {
    return absl::DataLossError(absl::StrCat("ends at byte ", head.size(),
                                            " in the IDX header; expected ", axes,
                                            " extents up to byte ", header_bytes));
  }
  ArrayHeader header;
  for (size_t i = 4; i < header_bytes; i += 4) {
    header.shape.push_back(int64_t{byte(i)} << 24 | byte(i + 1) << 16 | byte(i + 2) << 8 |
                           byte(i + 3));
  }
  header.format = {.type = *type, .order = std::endian::big};
  header.data_offset = header_bytes;
  return CheckedArrayHeader(std::move(header), 4);
}

}  // namespace shoal
