#include "common/model/ops/pad.h"

#include <algorithm>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/graph.h"
#include "common/model/ops/shape_checks.h"

namespace shoal {
namespace {

absl::Status CheckMargins(const std::vector<Shape>& inputs, const Margins& margins) {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 1, 1));
  const size_t axes = inputs[0].size();
  if (margins.before.size() + 1 != axes || margins.after.size() + 1 != axes) {
    return absl::InvalidArgumentError(absl::StrCat("margins of ", margins.before.size(),
                                                   " axes do not fit the input of shape ",
                                                   ShapeToString(inputs[0])));
  }
  for (const std::vector<int64_t>* sides : {&margins.before, &margins.after}) {
    for (const int64_t side : *sides) {
      if (side >= 0 && side <= kMaxElements) continue;
      return absl::InvalidArgumentError(absl::StrCat("a margin of ", side, " elements"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Shape>> PadOp::InferShapes(const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckMargins(inputs, margins));
  Shape y = inputs[0];
  for (size_t axis = 1; axis < y.size(); ++axis) {
    y[axis] += margins.before[axis - 1] + margins.after[axis - 1];
  }
  return OneShape(y);
}

absl::Status PadOp::Gradient(GradientBuilder& builder) const {
  auto op = std::make_shared<CropOp>();
  op->margins = margins;
  return builder.AddInputGradient(0, op, {builder.output_gradient(0)});
}

absl::StatusOr<std::vector<Shape>> CropOp::InferShapes(const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckMargins(inputs, margins));
  Shape y = inputs[0];
  for (size_t axis = 1; axis < y.size(); ++axis) {
    y[axis] -= margins.before[axis - 1] + margins.after[axis - 1];
    if (y[axis] > 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("of axis ", axis, " of the input of shape ", ShapeToString(inputs[0]), ", ",
                     margins.before[axis - 1], " and ", margins.after[axis - 1],
                     " elements cannot be cropped: none would be left"));
  }
  return OneShape(y);
}

absl::Status CropOp::Gradient(GradientBuilder& builder) const {
  auto op = std::make_shared<PadOp>();
  op->margins = margins;
  return builder.AddInputGradient(0, op, {builder.output_gradient(0)});
}

}  // namespace shoal
