#include "common/base/shape.h"

#include "absl/strings/str_cat.h"

namespace shoal {

int64_t ElementCount(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

std::string ShapeToString(const Shape& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) absl::StrAppend(&text, ", ");
    if (shape[i] == kBatch) {
      absl::StrAppend(&text, "None");
    } else {
      absl::StrAppend(&text, shape[i]);
    }
  }
  // A Python tuple of one has a trailing comma, also in Keras's summaries.
  absl::StrAppend(&text, shape.size() == 1 ? ",)" : ")");
  return text;
}

}  // namespace shoal
