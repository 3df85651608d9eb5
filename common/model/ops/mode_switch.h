#pragma once

#include "common/model/op.h"

namespace shoal {

// (in training, in inference), of one shape -> the one of the mode; the other is not computed
struct ModeSwitchOp : Op {
  SHOAL_OP(ModeSwitch);
  bool Reads(int i, bool training) const override { return i == (training ? 0 : 1); }
  absl::Status Gradient(GradientBuilder& builder) const override;
};

}  // namespace shoal
