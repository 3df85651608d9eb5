#include "common/model/ops/random_uniform.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/ops/shape_checks.h"

namespace shoal {

absl::StatusOr<std::vector<Shape>> RandomUniformOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 1, 1));
  if (inputs[0].empty()) return absl::InvalidArgumentError("a number has no examples");
  for (const Range& range : ranges) {
    if (range.low > range.high) {
      return absl::InvalidArgumentError(
          absl::StrCat("no number is from ", range.low, " to ", range.high));
    }
  }
  return OneShape({inputs[0][0], static_cast<int64_t>(ranges.size())});
}

absl::Status RandomUniformOp::Gradient(GradientBuilder&) const { return absl::OkStatus(); }

}  // namespace shoal
