#pragma once

#include "common/model/op.h"

namespace shoal {

// (a, b) -> f(a, b), element by element. Shapes broadcast as NumPy's do: aligned at the last axis,
// an extent of 1 is repeated, and so is an axis that one of them lacks; kBatch goes with kBatch
// or 1.
struct BinaryOp : Op {
  enum class Kind {
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kMaximum,  // of equal ones each gets half the gradient, as in JAX
    kMinimum,
    kGreater,  // 1 where a > b, 0.5 where they are equal, else 0: no gradient
  };
  Kind kind = Kind::kAdd;
  SHOAL_OP(Binary);
  // Integers are integers after all the others.
  bool KeepsWholeNumbers() const override {
    return kind != Kind::kDivide && kind != Kind::kGreater;
  }
  absl::Status Gradient(GradientBuilder& builder) const override;
};

// The shape that both broadcast to.
absl::StatusOr<Shape> BroadcastShape(const Shape& a, const Shape& b);

}  // namespace shoal
