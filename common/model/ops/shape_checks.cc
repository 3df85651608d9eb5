#include "common/model/ops/shape_checks.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace shoal {

absl::Status CheckInputCount(const std::vector<Shape>& inputs, size_t min, size_t max) {
  if (inputs.size() >= min && inputs.size() <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("takes ", min == max ? absl::StrCat(min) : absl::StrCat(min, " or more"),
                   max == 1 ? " input" : " inputs", ", got ", inputs.size()));
}

absl::Status CheckRank(const std::string& what, const Shape& shape, size_t rank) {
  if (shape.size() == rank) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the ", what, " must have ", rank, " axes, got shape ", ShapeToString(shape)));
}

absl::Status CheckSameShape(const std::string& what, const Shape& actual, const Shape& expected) {
  if (actual == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the ", what, " must have shape ", ShapeToString(expected), ", got ", ShapeToString(actual)));
}

absl::StatusOr<std::vector<Shape>> SameShapes(const std::vector<Shape>& inputs, size_t count) {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, count, count));
  for (const Shape& input : inputs) {
    SHOAL_RETURN_IF_ERROR(CheckSameShape("input", input, inputs[0]));
  }
  return OneShape(inputs[0]);
}

absl::Status CheckNormalization(const std::vector<Shape>& inputs, size_t count) {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, count, count));
  const Shape& x = inputs[0];
  if (x.size() < 2) return CheckRank("input", x, 2);
  for (size_t i = 1; i < count; ++i) {
    SHOAL_RETURN_IF_ERROR(CheckSameShape("variable of the normalization", inputs[i], {x.back()}));
  }
  return absl::OkStatus();
}

}  // namespace shoal
