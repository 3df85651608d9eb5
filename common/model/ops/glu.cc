#include "common/model/ops/glu.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/graph.h"
#include "common/model/ops/shape_checks.h"

namespace shoal {

absl::StatusOr<std::vector<Shape>> GluOp::InferShapes(const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 1, 1));
  Shape shape = inputs[0];
  if (shape.size() < 2 || shape.back() % 2 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("glu halves the last axis, got an input of shape ", ShapeToString(shape)));
  }
  shape.back() /= 2;
  return OneShape(shape);
}

absl::Status GluOp::Gradient(GradientBuilder& builder) const {
  return builder.AddInputGradient(0, std::make_shared<GluBackwardOp>(),
                                  {builder.input(0), builder.output_gradient(0)});
}

absl::StatusOr<std::vector<Shape>> GluBackwardOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 2, 2));
  return OneShape(inputs[0]);
}

}  // namespace shoal
