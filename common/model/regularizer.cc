#include "common/model/regularizer.h"

#include "absl/strings/str_cat.h"

namespace shoal {

absl::Status CheckShape(const Regularizer& regularizer, const Shape& shape) {
  if (regularizer.orthogonal == 0 || shape.size() == 2) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "an orthogonal regularizer needs two axes; the variable has shape ", ShapeToString(shape)));
}

}  // namespace shoal
