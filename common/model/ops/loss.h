#pragma once

#include "absl/status/statusor.h"
#include "common/base/shape.h"
#include "common/model/op.h"

namespace shoal {

struct LossAttributes {
  enum class Kind { kSparseCategoricalCrossentropy, kCategoricalCrossentropy, kMeanSquaredError };
  Kind kind = Kind::kMeanSquaredError;
  bool from_logits = false;
  double label_smoothing = 0;  // categorical only
};
// (prediction, target) -> loss of each example [B], averaged over inner axes, as in Keras.
// Probabilities (from_logits false) are normalised and clipped to [1e-7, 1 - 1e-7].
struct LossOp : Op {
  LossAttributes attributes;
  SHOAL_OP(Loss);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (prediction, target) -> d(L) / d(prediction). L is the mean of the loss over the batch, or, with
// `of_sum`, the sum.
struct LossBackwardOp : Op {
  LossAttributes attributes;
  bool of_sum = false;
  SHOAL_OP(LossBackward);
};

// Returns the shape of the target for predictions of shape `prediction`. It is the same, or lacks
// the axis of classes if the target is a class number.
absl::StatusOr<Shape> TargetShape(const LossAttributes& loss, const Shape& prediction);

}  // namespace shoal
