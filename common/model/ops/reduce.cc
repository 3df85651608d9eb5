#include "common/model/ops/reduce.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/graph.h"
#include "common/model/ops/binary.h"
#include "common/model/ops/shape_checks.h"

namespace shoal {
namespace {

// Returns an error unless `shape` broadcasts to `repeated`.
absl::Status CheckRepeats(const Shape& shape, const Shape& repeated) {
  const absl::StatusOr<Shape> both = BroadcastShape(shape, repeated);
  if (both.ok() && *both == repeated) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the shape ", ShapeToString(shape), " cannot be repeated to give ", ShapeToString(repeated)));
}

std::shared_ptr<const Op> Multiplication() {
  auto op = std::make_shared<BinaryOp>();
  op->kind = BinaryOp::Kind::kMultiply;
  return op;
}

}  // namespace

absl::StatusOr<std::vector<Shape>> SumToOp::InferShapes(const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 1, 1));
  SHOAL_RETURN_IF_ERROR(CheckRepeats(shape, inputs[0]));
  return OneShape(shape);
}

absl::Status SumToOp::Gradient(GradientBuilder& builder) const {
  return builder.AddInputGradient(0, std::make_shared<BroadcastLikeOp>(),
                                  {builder.output_gradient(0), builder.input(0)});
}

absl::StatusOr<std::vector<Shape>> MaxToOp::InferShapes(const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 1, 1));
  SHOAL_RETURN_IF_ERROR(CheckRepeats(shape, inputs[0]));
  return OneShape(shape);
}

// Twice kGreater of x and its own maximum is 1 where x is the maximum and 0 elsewhere.
absl::Status MaxToOp::Gradient(GradientBuilder& builder) const {
  if (!builder.wanted(0)) return absl::OkStatus();
  auto greater = std::make_shared<BinaryOp>();
  greater->kind = BinaryOp::Kind::kGreater;
  SHOAL_ASSIGN_OR_RETURN(const ValueId share,
                         builder.Add(greater, {builder.input(0), builder.output(0)}));
  auto sum = std::make_shared<SumToOp>();
  sum->shape = shape;
  SHOAL_ASSIGN_OR_RETURN(const ValueId shares, builder.Add(sum, {share}));
  auto divide = std::make_shared<BinaryOp>();
  divide->kind = BinaryOp::Kind::kDivide;
  SHOAL_ASSIGN_OR_RETURN(const ValueId each,
                         builder.Add(divide, {builder.output_gradient(0), shares}));
  return builder.AddInputGradient(0, Multiplication(), {share, each});
}

absl::StatusOr<std::vector<Shape>> BroadcastLikeOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 2, 2));
  SHOAL_RETURN_IF_ERROR(CheckRepeats(inputs[0], inputs[1]));
  return OneShape(inputs[1]);
}

absl::Status BroadcastLikeOp::Gradient(GradientBuilder& builder) const {
  auto sum = std::make_shared<SumToOp>();
  sum->shape = builder.input_shape(0);
  return builder.AddInputGradient(0, sum, {builder.output_gradient(0)});
}

absl::StatusOr<std::vector<Shape>> MeanGradientOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 1, 1));
  return OneShape(inputs[0]);
}

}  // namespace shoal
