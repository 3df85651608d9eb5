#pragma once

#include "common/model/op.h"

namespace shoal {

// (x) -> x summed to `shape`, over all axes that have extent 1 in `shape` or that it lacks. This is
// the inverse of broadcasting (BinaryOp) `shape` to x's shape. For x (None, 5), `shape` (None, 1)
// gives the sum of each row, and (1, 1) the sum of all elements.
struct SumToOp : Op {
  Shape shape;
  SHOAL_OP(SumTo);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// As SumToOp, with the maximum instead of the sum. Equal maxima share the gradient.
struct MaxToOp : Op {
  Shape shape;
  SHOAL_OP(MaxTo);
  bool KeepsWholeNumbers() const override { return true; }
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (x, like) -> x repeated to the shape of `like`, whose values are ignored
struct BroadcastLikeOp : Op {
  SHOAL_OP(BroadcastLike);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (x [B, ...]) -> 1 / B everywhere: the gradient of the mean over the examples
struct MeanGradientOp : Op {
  SHOAL_OP(MeanGradient);
};

}  // namespace shoal
