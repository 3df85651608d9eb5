#pragma once

#include "common/base/shape.h"
#include "common/model/op.h"

namespace shoal {

// (x [..., 2 n]) -> a sigmoid(b) [..., n], where a and b are the halves along the last axis
struct GluOp : Op {
  SHOAL_OP(Glu);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (x, dy) -> dx
struct GluBackwardOp : Op {
  SHOAL_OP(GluBackward);
};

}  // namespace shoal
