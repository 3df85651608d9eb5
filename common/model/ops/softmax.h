#pragma once

#include "common/model/op.h"

namespace shoal {

// (x) -> softmax along the last axis
struct SoftmaxOp : Op {
  SHOAL_OP(Softmax);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (y, dy) -> dx
struct SoftmaxBackwardOp : Op {
  SHOAL_OP(SoftmaxBackward);
};

}  // namespace shoal
