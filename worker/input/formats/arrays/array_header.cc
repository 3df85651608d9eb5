#include "worker/input/formats/arrays/array_header.h"

#include <limits>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "worker/input/formats/arrays/idx_format.h"
#include "worker/input/formats/arrays/npy_format.h"

namespace shoal {

absl::StatusOr<ArrayHeader> ParseArrayHeader(std::string_view head) {
  if (IsNpy(head)) return ParseNpyHeader(head);
  if (IsIdx(head)) return ParseIdxHeader(head);
  if (head.empty()) return absl::DataLossError("the file is empty; expected IDX or NPY");
  if (head.substr(0, 4) == "PK\x03\x04") {
    return absl::DataLossError(
        "is a zip archive; for an .npz, write \"format\": \"npz\", \"path\": the file, and its "
        "arrays' names as \"features\" and \"labels\" in the job's $.data");
  }
  return absl::DataLossError(absl::StrCat("at byte 0: \"",
                                          absl::CHexEscape(std::string(head.substr(0, 6))),
                                          "\" begins neither IDX (two zero bytes, type, number of "
                                          "axes) nor NPY (\"\\x93NUMPY\"), plain or "
                                          "gzipped"));
}

absl::StatusOr<ArrayHeader> CheckedArrayHeader(ArrayHeader header, uint64_t shape_offset) {
  const std::string where =
      absl::StrCat("at byte ", shape_offset, ": shape ", ShapeToString(header.shape), " ");
  if (header.shape.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, "has no axis; expected one for the examples"));
  }
  int64_t bytes = static_cast<int64_t>(ElementBytes(header.format.type));
  for (const int64_t extent : header.shape) {
    if (extent <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, "has the extent ", extent, "; expected at least 1"));
    }
    if (__builtin_mul_overflow(bytes, extent, &bytes)) {
      return absl::DataLossError(absl::StrCat(where, "needs more bytes than any file can have"));
    }
  }
  if (bytes > std::numeric_limits<int64_t>::max() - static_cast<int64_t>(header.data_offset)) {
    return absl::DataLossError(absl::StrCat(where, "needs more bytes than any file can have"));
  }
  header.data_bytes = static_cast<uint64_t>(bytes);
  return header;
}

}  // namespace shoal
