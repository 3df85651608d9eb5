#include "common/model/ops/gather.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/graph.h"
#include "common/model/ops/shape_checks.h"

namespace shoal {

absl::StatusOr<std::vector<Shape>> GatherOp::InferShapes(const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 2, 2));
  SHOAL_RETURN_IF_ERROR(CheckRank("table", inputs[0], 2));
  // Ids are float32, which is exact up to 2^24.
  if (inputs[0][0] > (int64_t{1} << 24)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a table of ", inputs[0][0], " rows; ids can number 2^24 at most"));
  }
  Shape y = inputs[1];
  y.push_back(inputs[0][1]);
  return OneShape(y);
}

absl::Status GatherOp::Gradient(GradientBuilder& builder) const {
  auto op = std::make_shared<GatherBackwardOp>();
  op->table_shape = builder.input_shape(0);
  return builder.AddInputGradient(0, op, {builder.input(1), builder.output_gradient(0)});
}

absl::StatusOr<std::vector<Shape>> GatherBackwardOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 2, 2));
  return OneShape(table_shape);
}

}  // namespace shoal
