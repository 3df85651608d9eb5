#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/ops.h"
#include "common/model/ops/shape_checks.h"

namespace shoal {
namespace {

// The rule of an op whose inputs all have the shape of its output.
absl::StatusOr<std::vector<Shape>> SameShape(const std::vector<Shape>& inputs, size_t count) {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, count, count));
  for (const Shape& input : inputs)
    SHOAL_RETURN_IF_ERROR(CheckSameShape("input", input, inputs[0]));
  return OneShape(inputs[0]);
}

// Appends `op` on `inputs` as the gradient of the node's only input, if that is wanted.
absl::Status AddOnlyGradient(GradientBuilder& builder, std::shared_ptr<const Op> op,
                             std::vector<ValueId> inputs) {
  if (!builder.wanted(0)) return absl::OkStatus();
  SHOAL_ASSIGN_OR_RETURN(const ValueId dx, builder.Add(std::move(op), std::move(inputs)));
  builder.SetInputGradient(0, dx);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Shape>> DropoutOp::InferShapes(const std::vector<Shape>& inputs) const {
  return SameShape(inputs, 1);
}

absl::Status DropoutOp::Gradient(GradientBuilder& builder) const {
  auto op = std::make_shared<DropoutBackwardOp>();
  op->rate = rate;
  op->layer_seed = layer_seed;
  return AddOnlyGradient(builder, op, {builder.output_gradient(0)});
}

absl::StatusOr<std::vector<Shape>> DropoutBackwardOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  return SameShape(inputs, 1);
}

absl::StatusOr<std::vector<Shape>> ActivationOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  return SameShape(inputs, 1);
}

absl::Status ActivationOp::Gradient(GradientBuilder& builder) const {
  auto op = std::make_shared<ActivationBackwardOp>();
  op->attributes = attributes;
  return AddOnlyGradient(builder, op,
                         {builder.input(0), builder.output(0), builder.output_gradient(0)});
}

absl::StatusOr<std::vector<Shape>> ActivationBackwardOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  return SameShape(inputs, 3);
}

absl::StatusOr<std::vector<Shape>> SoftmaxOp::InferShapes(const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 1, 1));
  if (inputs[0].size() < 2) return CheckRank("input", inputs[0], 2);
  return OneShape(inputs[0]);
}

absl::Status SoftmaxOp::Gradient(GradientBuilder& builder) const {
  return AddOnlyGradient(builder, std::make_shared<SoftmaxBackwardOp>(),
                         {builder.output(0), builder.output_gradient(0)});
}

absl::StatusOr<std::vector<Shape>> SoftmaxBackwardOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  return SameShape(inputs, 2);
}

absl::StatusOr<std::vector<Shape>> RescaleOp::InferShapes(const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 1, 1));
  const Shape& x = inputs[0];
  for (const std::vector<double>* factors : {&scale, &offset}) {
    if (factors->size() == 1) continue;
    if (x.size() < 2 || static_cast<int64_t>(factors->size()) != x.back()) {
      return absl::InvalidArgumentError(
          absl::StrCat(factors == &scale ? "scale" : "offset", " has ", factors->size(),
                       " values; 1 or one per channel of the input of shape ", ShapeToString(x),
                       " would be right"));
    }
  }
  return OneShape(x);
}

absl::Status RescaleOp::Gradient(GradientBuilder& builder) const {
  auto op = std::make_shared<RescaleOp>();
  op->scale = scale;
  return AddOnlyGradient(builder, op, {builder.output_gradient(0)});
}

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
