#pragma once

#include "common/model/op.h"

namespace shoal {

// (x [..., K], kernel [K, N], bias [N] optional) -> [..., N]
struct DenseOp : Op {
  SHOAL_OP(Dense);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (dy [..., N], kernel [K, N]) -> dx [..., K]
struct DenseBackwardDataOp : Op {
  SHOAL_OP(DenseBackwardData);
};
// (x [..., K], dy [..., N]) -> dkernel [K, N]
struct DenseBackwardWeightsOp : Op {
  SHOAL_OP(DenseBackwardWeights);
};

}  // namespace shoal
