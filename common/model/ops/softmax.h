#pragma once

#include "common/model/op.h"

namespace shoal {

// (x) -> y along the last axis
struct SoftmaxOp : Op {
  enum class Kind { kSoftmax, kLogSoftmax };
  Kind kind = Kind::kSoftmax;
  SHOAL_OP(Softmax);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (y, dy) -> dx
struct SoftmaxBackwardOp : Op {
  SoftmaxOp::Kind kind = SoftmaxOp::Kind::kSoftmax;
  SHOAL_OP(SoftmaxBackward);
};

}  // namespace shoal
