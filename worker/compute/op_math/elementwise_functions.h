#pragma once

#include <cmath>

#include "common/model/ops/binary.h"
#include "common/model/ops/unary.h"
#include "worker/compute/op_math/host_device.h"

// BinaryOp and UnaryOp for one element. Not-a-number in gives not-a-number out, so that a ruined
// model shows.

namespace shoal {

template <BinaryOp::Kind kind, typename Scalar>
SHOAL_HOST_DEVICE Scalar Binary(Scalar a, Scalar b) {
  using Kind = BinaryOp::Kind;
  if constexpr (kind == Kind::kAdd) return a + b;
  if constexpr (kind == Kind::kSubtract) return a - b;
  if constexpr (kind == Kind::kMultiply) return a * b;
  if constexpr (kind == Kind::kDivide) return a / b;
  // NOLINTBEGIN(misc-redundant-expression): a != a if it is not-a-number
  if constexpr (kind == Kind::kMaximum) return a > b || a != a ? a : b;
  if constexpr (kind == Kind::kMinimum) return a < b || a != a ? a : b;
  // NOLINTEND(misc-redundant-expression)
  if constexpr (kind == Kind::kGreater) return a > b ? 1 : a < b ? 0 : a == b ? Scalar(0.5) : a + b;
}

// Calls use(kind) with `kind` as a compile-time constant, so that the compiler makes a loop for
// each kind.
template <typename Use>
void WithConstantKind(BinaryOp::Kind kind, const Use& use) {
  using Kind = BinaryOp::Kind;
  switch (kind) {
    case Kind::kAdd:
      return use(std::integral_constant<Kind, Kind::kAdd>());
    case Kind::kSubtract:
      return use(std::integral_constant<Kind, Kind::kSubtract>());
    case Kind::kMultiply:
      return use(std::integral_constant<Kind, Kind::kMultiply>());
    case Kind::kDivide:
      return use(std::integral_constant<Kind, Kind::kDivide>());
    case Kind::kMaximum:
      return use(std::integral_constant<Kind, Kind::kMaximum>());
    case Kind::kMinimum:
      return use(std::integral_constant<Kind, Kind::kMinimum>());
    case Kind::kGreater:
      return use(std::integral_constant<Kind, Kind::kGreater>());
  }
}

// `op` is a UnaryOp or has the same attributes.
template <typename Attributes, typename Scalar>
SHOAL_HOST_DEVICE Scalar Unary(const Attributes& op, Scalar x) {
  using Kind = UnaryOp::Kind;
  const Scalar low = static_cast<Scalar>(op.low), high = static_cast<Scalar>(op.high);
  switch (op.kind) {
    case Kind::kExp:
      return std::exp(x);
    case Kind::kLog:
      return std::log(x);
    case Kind::kAbs:
      return std::abs(x);
    case Kind::kSign:
      return x > 0 ? 1 : x < 0 ? -1 : x;
    case Kind::kSquare:
      return x * x;
    case Kind::kSquareRoot:
      return std::sqrt(x);
    case Kind::kPower:
      return std::pow(x, static_cast<Scalar>(op.exponent));
    case Kind::kClip:
      return x < low ? low : x > high ? high : x;
    case Kind::kInside:
      if (x != x) return x;  // NOLINT(misc-redundant-expression): not-a-number
      return x < low || x > high ? 0 : x == low || x == high ? Scalar(0.5) : 1;
  }
  return x;
}

}  // namespace shoal
