#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "worker/input/formats/arrays/array_header.h"

namespace shoal {

// NPY, NumPy's format (described in numpy.lib.format):
//   file    = 93 'NUMPY' major minor length header element*
//   length  = u16 (major 1) | u32 (major 2 and 3), little-endian: bytes of `header`
//   header  = a Python dict: {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }
//             then spaces and a newline
bool IsNpy(std::string_view head);
// See ParseArrayHeader. Returns kUnimplemented for Fortran order and for element types other than
// u1, i1, i2, i4, i8, f4 and f8.
absl::StatusOr<ArrayHeader> ParseNpyHeader(std::string_view head);

}  // namespace shoal
