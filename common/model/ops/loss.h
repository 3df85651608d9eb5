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
// (prediction, target) -> loss of each example [B], averaged over inner axes as Keras does.
// Probabilities (from_logits false) are normalised and clipped to [1e-7, 1 - 1e-7].
struct LossOp : Op {
  LossAttributes attributes;
  SHOAL_OP(Loss);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (prediction, target) -> d(mean over the batch of the loss) / d(prediction), or of the sum
struct LossBackwardOp : Op {
  LossAttributes attributes;
  bool of_sum = false;
  SHOAL_OP(LossBackward);
};

// Shape of the target that goes with predictions of shape `prediction`: the same, or without the
// axis of classes where the target is the class's number.
absl::StatusOr<Shape> TargetShape(const LossAttributes& loss, const Shape& prediction);

}  // namespace shoal
