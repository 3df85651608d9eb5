#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/base/shape.h"
#include "worker/input/formats/arrays/element_type.h"

namespace shoal {

// Headers longer than this are refused; those of NPY files with plain numbers have about 128 bytes.
inline constexpr size_t kMaxHeaderBytes = 64 << 10;

// What the head of a data file says: an array in C order, stored without gaps up to the file's end.
struct ArrayHeader {
  Shape shape;  // at least one axis, every extent > 0
  ElementFormat format;
  uint64_t data_offset = 0;  // bytes before the first element
  uint64_t data_bytes = 0;   // data_offset + data_bytes fits an int64_t

  uint64_t file_bytes() const { return data_offset + data_bytes; }
};

// Reads the header of an IDX or NPY file, told apart by content. `head` is the (decoded) file's
// first kMaxHeaderBytes, or all of it. Errors give the offset and what was expected, not the file's
// name.
absl::StatusOr<ArrayHeader> ParseArrayHeader(std::string_view head);

// Completes a header whose other fields are set: checks the shape and computes data_bytes.
// `shape_offset` is where the shape stands, for the error.
absl::StatusOr<ArrayHeader> CheckedArrayHeader(ArrayHeader header, uint64_t shape_offset);

}  // namespace shoal
