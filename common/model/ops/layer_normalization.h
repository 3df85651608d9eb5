#pragma once

#include "common/model/op.h"

namespace shoal {

// (x [..., C], gamma [C] if `scale`, beta [C] if `center`)
//   -> (x - mean) / sqrt(variance + epsilon) * gamma + beta.
// Mean and variance (the mean square deviation) are those of each row of C.
struct LayerNormalizationOp : Op {
  double epsilon = 1e-3;
  bool scale = true;
  bool center = true;
  SHOAL_OP(LayerNormalization);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (x, dy, gamma if `scale`) -> dx, dgamma, dbeta
struct LayerNormalizationBackwardOp : Op {
  double epsilon = 1e-3;
  bool scale = true;
  SHOAL_OP(LayerNormalizationBackward);
};

}  // namespace shoal
