#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/base/shape.h"
#include "worker/input/formats/arrays/element_type.h"

namespace shoal {

// Max bytes of a header. Headers of NPY files with plain numbers have about 128 bytes.
inline constexpr size_t kMaxHeaderBytes = 64 << 10;

// The header of a data file. Its array is in C order and without gaps up to the file's end.
struct ArrayHeader {
  Shape shape;  // at least one axis, every extent > 0
  ElementFormat format;
  uint64_t data_offset = 0;  // bytes before the first element
  uint64_t data_bytes = 0;   // data_offset + data_bytes fits an int64_t

  uint64_t file_bytes() const { return data_offset + data_bytes; }
};

// Reads the header of an IDX or NPY file and detects the format from the content. `head` is the
// first kMaxHeaderBytes of the decoded file, or all of it. Errors name the offset and the expected
// content, but not the file.
absl::StatusOr<ArrayHeader> ParseArrayHeader(std::string_view head);

// Completes a header: checks its shape and computes data_bytes. Requires all other fields.
// `shape_offset` is the offset of the shape in the file, for errors.
absl::StatusOr<ArrayHeader> CheckedArrayHeader(ArrayHeader header, uint64_t shape_offset);

}  // namespace shoal
