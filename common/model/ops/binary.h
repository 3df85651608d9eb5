#pragma once

#include <memory>

#include "common/model/op.h"

namespace shoal {

// (a, b) -> f(a, b), element by element. Shapes broadcast as in NumPy, aligned at the last axis. An
// extent of 1 is repeated, and so is a missing axis. kBatch matches kBatch or 1.
struct BinaryOp : Op {
  enum class Kind {
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kMaximum,  // equal elements get half the gradient each, as in JAX
    kMinimum,
    kGreater,  // 1 where a > b, 0.5 where they are equal, else 0: no gradient
  };
  Kind kind = Kind::kAdd;
  SHOAL_OP(Binary);
  // All other kinds map integers to integers.
  bool KeepsWholeNumbers() const override {
    return kind != Kind::kDivide && kind != Kind::kGreater;
  }
  absl::Status Gradient(GradientBuilder& builder) const override;
};

// Returns the shape to which both broadcast.
absl::StatusOr<Shape> BroadcastShape(const Shape& a, const Shape& b);

std::shared_ptr<const Op> MakeBinary(BinaryOp::Kind kind);

}  // namespace shoal
