#include "common/model/ops/warp.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/graph.h"
#include "common/model/ops/shape_checks.h"

namespace shoal {
namespace {

// Returns an error unless each example has the count of numbers that the kind takes.
absl::Status CheckNumbers(WarpAttributes::Kind kind, const Shape& numbers, int64_t examples) {
  using Kind = WarpAttributes::Kind;
  SHOAL_RETURN_IF_ERROR(CheckRank("numbers", numbers, 2));
  const int64_t count = numbers[1];
  const bool fits = kind == Kind::kZoom
                        ? count == 1 || count == 2
                        : count == (kind == Kind::kFlip || kind == Kind::kRotate ? 1 : 2);
  if (fits && numbers[0] == examples) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("numbers of shape ", ShapeToString(numbers), " do not say how ",
                   examples == kBatch ? "a batch" : absl::StrCat(examples, " images"), " lie"));
}

}  // namespace

absl::StatusOr<std::vector<Shape>> WarpOp::InferShapes(const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 2, 2));
  const Shape& x = inputs[0];
  SHOAL_RETURN_IF_ERROR(CheckRank("input", x, 4));
  SHOAL_RETURN_IF_ERROR(CheckNumbers(attributes.kind, inputs[1], x[0]));
  if (height < 1 || width < 1 || height > x[1] || width > x[2]) {
    return absl::InvalidArgumentError(absl::StrCat("an image of shape ", ShapeToString(x),
                                                   " cannot be warped to ", height, " x ", width));
  }
  return OneShape({x[0], height, width, x[3]});
}

absl::Status WarpOp::Gradient(GradientBuilder& builder) const {
  auto op = std::make_shared<WarpBackwardOp>();
  op->attributes = attributes;
  op->x_shape = builder.input_shape(0);
  return builder.AddInputGradient(0, op, {builder.output_gradient(0), builder.input(1)});
}

absl::StatusOr<std::vector<Shape>> WarpBackwardOp::InferShapes(
    const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 2, 2));
  return OneShape(x_shape);
}

}  // namespace shoal
