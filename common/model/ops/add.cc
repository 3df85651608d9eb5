#include "common/model/ops/add.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/model/graph.h"
#include "common/model/ops/shape_checks.h"

namespace shoal {

absl::StatusOr<std::vector<Shape>> AddOp::InferShapes(const std::vector<Shape>& inputs) const {
  if (inputs.size() < 2) return CheckInputCount(inputs, 2, inputs.max_size());
  for (const Shape& input : inputs) {
    if (input == inputs[0]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("inputs of the shapes ", ShapeToString(inputs[0]), " and ",
                     ShapeToString(input), " cannot be added; they must be equal"));
  }
  return OneShape(inputs[0]);
}

absl::Status AddOp::Gradient(GradientBuilder& builder) const {
  for (int i = 0; i < builder.input_count(); ++i) {
    if (builder.wanted(i)) builder.SetInputGradient(i, builder.output_gradient(0));
  }
  return absl::OkStatus();
}

}  // namespace shoal
