#include "common/model/ops/loss.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/graph.h"
#include "common/model/ops/binary.h"
#include "common/model/ops/reshape.h"
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

// If the reverse pass starts here, the output has no gradient. The result is then the gradient of
// the mean.
absl::Status LossOp::Gradient(GradientBuilder& builder) const {
  if (!builder.wanted(0)) return absl::OkStatus();
  auto op = std::make_shared<LossBackwardOp>();
  op->attributes = attributes;
  op->of_sum = builder.output_gradient(0) != kNoValue;
  SHOAL_ASSIGN_OR_RETURN(ValueId gradient, builder.Add(op, {builder.input(0), builder.input(1)}));
  if (op->of_sum) {
    // Repeat each example's gradient along all axes of its prediction.
    auto reshape = std::make_shared<ReshapeOp>();
    reshape->shape = Shape(builder.input_shape(0).size(), 1);
    reshape->shape[0] = builder.input_shape(0)[0];
    auto multiply = std::make_shared<BinaryOp>();
    multiply->kind = BinaryOp::Kind::kMultiply;
    SHOAL_ASSIGN_OR_RETURN(const ValueId of_example,
                           builder.Add(reshape, {builder.output_gradient(0)}));
    SHOAL_ASSIGN_OR_RETURN(gradient, builder.Add(multiply, {gradient, of_example}));
  }
  builder.SetInputGradient(0, gradient);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Shape>> LossBackwardOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 2, 2));
  SHOAL_ASSIGN_OR_RETURN(const Shape target, TargetShape(attributes, inputs[0]));
  SHOAL_RETURN_IF_ERROR(CheckSameShape("target", inputs[1], target));
  return OneShape(inputs[0]);
}

}  // namespace shoal
