#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "worker/input/formats/arrays/array_header.h"

namespace shoal {

// IDX, the format of the MNIST family:
//   file  = 00 00 type axes extent{axes} element*
//   type  = 08 u8 | 09 i8 | 0B i16 | 0C i32 | 0D f32 | 0E f64
//   axes  = one byte;  extent = u32
// All numbers are big-endian, elements are in C order.
bool IsIdx(std::string_view head);
// See ParseArrayHeader.
absl::StatusOr<ArrayHeader> ParseIdxHeader(std::string_view head);

}  // namespace shoal
