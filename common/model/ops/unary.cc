#include "common/model/ops/unary.h"

#include <memory>

#include "common/base/status_macros.h"
#include "common/model/graph.h"
#include "common/model/ops/binary.h"
#include "common/model/ops/rescale.h"
#include "common/model/ops/shape_checks.h"

namespace shoal {
namespace {

std::shared_ptr<const Op> Times(double factor) {
  auto op = std::make_shared<RescaleOp>();
  op->scale = {factor};
  return op;
}

}  // namespace

absl::StatusOr<std::vector<Shape>> UnaryOp::InferShapes(const std::vector<Shape>& inputs) const {
  SHOAL_RETURN_IF_ERROR(CheckInputCount(inputs, 1, 1));
  return OneShape(inputs[0]);
}

absl::Status UnaryOp::Gradient(GradientBuilder& builder) const {
  if (!builder.wanted(0)) return absl::OkStatus();
  const ValueId x = builder.input(0), y = builder.output(0), dy = builder.output_gradient(0);
  const auto unary = [&](Kind of, double power = 1) {
    auto op = std::make_shared<UnaryOp>(*this);
    op->kind = of;
    op->exponent = power;
    return builder.Add(op, {x});
  };
  const auto set = [&](BinaryOp::Kind with, ValueId factor) {
    return builder.AddInputGradient(0, MakeBinary(with), {dy, factor});
  };
  switch (kind) {
    case Kind::kExp:
      return set(BinaryOp::Kind::kMultiply, y);
    case Kind::kLog:
      return set(BinaryOp::Kind::kDivide, x);
    case Kind::kAbs: {
      SHOAL_ASSIGN_OR_RETURN(const ValueId sign, unary(Kind::kSign));
      return set(BinaryOp::Kind::kMultiply, sign);
    }
    case Kind::kSign:
    case Kind::kInside:
      return absl::OkStatus();
    case Kind::kSquare: {
      SHOAL_ASSIGN_OR_RETURN(const ValueId twice, builder.Add(Times(2), {x}));
      return set(BinaryOp::Kind::kMultiply, twice);
    }
    case Kind::kSquareRoot: {
      SHOAL_ASSIGN_OR_RETURN(const ValueId twice, builder.Add(Times(2), {y}));
      return set(BinaryOp::Kind::kDivide, twice);
    }
    case Kind::kPower: {
      if (exponent == 0) return absl::OkStatus();  // 0 * x^-1 is not a number at 0
      SHOAL_ASSIGN_OR_RETURN(ValueId slope, unary(Kind::kPower, exponent - 1));
      SHOAL_ASSIGN_OR_RETURN(slope, builder.Add(Times(exponent), {slope}));
      return set(BinaryOp::Kind::kMultiply, slope);
    }
    case Kind::kClip: {
      SHOAL_ASSIGN_OR_RETURN(const ValueId inside, unary(Kind::kInside));
      return set(BinaryOp::Kind::kMultiply, inside);
    }
  }
  return absl::OkStatus();
}

}  // namespace shoal
