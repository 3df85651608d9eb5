#include "common/model/ops/binary.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/graph.h"
#include "common/model/ops/reduce.h"
#include "common/model/ops/rescale.h"
#include "common/model/ops/shape_checks.h"

namespace shoal {
namespace {

std::shared_ptr<const Op> Negation() {
  auto op = std::make_shared<RescaleOp>();
  op->scale = {-1};
  return op;
}

// Sets the gradient of input `i` from `gradient`, which has the output's shape. Sums it along the
// axes on which the input was repeated.
absl::Status SetGradient(GradientBuilder& builder, int i, ValueId gradient,
                         const Shape& output_shape) {
  const Shape& shape = builder.input_shape(i);
  if (shape != output_shape) {
    auto sum = std::make_shared<SumToOp>();
    sum->shape = shape;
    SHOAL_ASSIGN_OR_RETURN(gradient, builder.Add(sum, {gradient}));
  }
  builder.SetInputGradient(i, gradient);
  return absl::OkStatus();
}

// The gradient of input `i`, in the output's shape.
absl::StatusOr<ValueId> GradientOf(int i, BinaryOp::Kind kind, GradientBuilder& builder) {
  using Kind = BinaryOp::Kind;
  const ValueId a = builder.input(0), b = builder.input(1), dy = builder.output_gradient(0);
  switch (kind) {
    case Kind::kAdd:
    case Kind::kGreater:
      return dy;
    case Kind::kSubtract:
      return i == 0 ? dy : builder.Add(Negation(), {dy});
    case Kind::kMultiply:
      return builder.Add(MakeBinary(Kind::kMultiply), {dy, i == 0 ? b : a});
    case Kind::kDivide: {
      SHOAL_ASSIGN_OR_RETURN(const ValueId da, builder.Add(MakeBinary(Kind::kDivide), {dy, b}));
      if (i == 0) return da;
      SHOAL_ASSIGN_OR_RETURN(const ValueId product,
                             builder.Add(MakeBinary(Kind::kMultiply), {da, builder.output(0)}));
      return builder.Add(Negation(), {product});
    }
    case Kind::kMaximum:
    case Kind::kMinimum: {
      const bool a_over_b = (i == 0) == (kind == Kind::kMaximum);
      SHOAL_ASSIGN_OR_RETURN(
          const ValueId taken,
          builder.Add(MakeBinary(Kind::kGreater), {a_over_b ? a : b, a_over_b ? b : a}));
      return builder.Add(MakeBinary(Kind::kMultiply), {dy, taken});
    }
  }
  return dy;
}

}  // namespace

std::shared_ptr<const Op> MakeBinary(BinaryOp::Kind kind) {
  auto op = std::make_shared<BinaryOp>();
  op->kind = kind;
  return op;
}

absl::StatusOr<Shape> BroadcastShape(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()));
  for (size_t i = 1; i <= result.size(); ++i) {
    const int64_t in_a = i <= a.size() ? a[a.size() - i] : 1;
    const int64_t in_b = i <= b.size() ? b[b.size() - i] : 1;
    if (in_a != in_b && in_a != 1 && in_b != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("inputs of the shapes ", ShapeToString(a), " and ", ShapeToString(b),
                       " do not go together; each extent must be equal, or 1"));
    }
    result[result.size() - i] = in_a == 1 ? in_b : in_a;
  }
  return result;
}

absl::StatusOr<std::vector<Shape>> BinaryOp::InferShapes(const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 2, 2));
  SHOAL_ASSIGN_OR_RETURN(Shape shape, BroadcastShape(inputs[0], inputs[1]));
  return OneShape(std::move(shape));
}

absl::Status BinaryOp::Gradient(GradientBuilder& builder) const {
  if (kind == Kind::kGreater) return absl::OkStatus();
  SHOAL_ASSIGN_OR_RETURN(const Shape shape,
                         BroadcastShape(builder.input_shape(0), builder.input_shape(1)));
  for (const int i : {0, 1}) {
    if (!builder.wanted(i)) continue;
    SHOAL_ASSIGN_OR_RETURN(const ValueId gradient, GradientOf(i, kind, builder));
    SHOAL_RETURN_IF_ERROR(SetGradient(builder, i, gradient, shape));
  }
  return absl::OkStatus();
}

}  // namespace shoal
