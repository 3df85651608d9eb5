#pragma once

#include "common/model/op.h"

namespace shoal {

// (x) -> the sums over those axes along which values of `shape` would be repeated to give x's shape
// (BinaryOp says how): those of extent 1 in `shape`, and those that it lacks. With `shape` (None,
// 1) the sums of the rows of x (None, 5); with (1, 1) that of all of it.
struct SumToOp : Op {
  Shape shape;
  SHOAL_OP(SumTo);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (x) -> the largest instead of the sum. Equal ones share the gradient.
struct MaxToOp : Op {
  Shape shape;
  SHOAL_OP(MaxTo);
  bool KeepsWholeNumbers() const override { return true; }
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (x, like) -> x repeated to the shape of `like`, whose values do not matter
struct BroadcastLikeOp : Op {
  SHOAL_OP(BroadcastLike);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (x [B, ...]) -> 1 / B everywhere: the gradient that the mean over the examples has
struct MeanGradientOp : Op {
  SHOAL_OP(MeanGradient);
};

}  // namespace shoal
