#pragma once

#include "common/model/op.h"

namespace shoal {

// (x [..., C], moving mean [C], moving variance [C], gamma [C] if `scale`, beta [C] if `center`)
//   -> y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, mean [C], variance [C].
// In training, mean and variance are those of the batch over all axes but the last. The variance is
// the mean square deviation, as in Keras 3. In inference they are the moving ones, and the last two
// outputs have no meaning. If `frozen`, training computes the same as inference.
struct BatchNormalizationOp : Op {
  double epsilon = 1e-3;
  bool scale = true;
  bool center = true;
  bool frozen = false;
  SHOAL_OP(BatchNormalization);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (x, dy, mean, variance, gamma if `scale`) -> dx, dgamma, dbeta. Unless `frozen`, mean and
// variance depend on x.
struct BatchNormalizationBackwardOp : Op {
  double epsilon = 1e-3;
  bool scale = true;
  bool frozen = false;
  SHOAL_OP(BatchNormalizationBackward);
};

}  // namespace shoal
