#include "common/model/ops/loss.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/graph.h"
#include "common/model/ops/shape_checks.h"

namespace shoal {

absl::StatusOr<Shape> TargetShape(const LossAttributes& loss, const Shape& prediction) {
  if (loss.kind == LossAttributes::Kind::kMeanSquaredError) {
    if (prediction.empty()) return CheckRank("prediction", prediction, 1);
    return prediction;
  }
  if (prediction.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("a cross-entropy needs predictions with an axis of classes, got shape ",
                     ShapeToString(prediction)));
  }
  if (loss.kind == LossAttributes::Kind::kCategoricalCrossentropy) return prediction;
  return Shape(prediction.begin(), prediction.end() - 1);
}

absl::StatusOr<std::vector<Shape>> LossOp::InferShapes(const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 2, 2));
  SHOAL_ASSIGN_OR_RETURN(const Shape target, TargetShape(attributes, inputs[0]));
  SHOAL_RETURN_IF_ERROR(CheckSameShape("target", inputs[1], target));
  return OneShape({inputs[0][0]});
}

// The loss is where the reverse pass starts: there is no gradient of its output.
absl::Status LossOp::Gradient(GradientBuilder& builder) const {
  auto op = std::make_shared<LossBackwardOp>();
  op->attributes = attributes;
  return builder.AddInputGradient(0, op, {builder.input(0), builder.input(1)});
}

absl::StatusOr<std::vector<Shape>> LossBackwardOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 2, 2));
  SHOAL_ASSIGN_OR_RETURN(const Shape target, TargetShape(attributes, inputs[0]));
  SHOAL_RETURN_IF_ERROR(CheckSameShape("target", inputs[1], target));
  return OneShape(inputs[0]);
}

}  // namespace shoal
