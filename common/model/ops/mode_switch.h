#pragma once

#include "common/model/op.h"

namespace shoal {

// (training value, inference value), of one shape -> the value of the current mode. The other value
// is not computed.
struct ModeSwitchOp : Op {
  SHOAL_OP(ModeSwitch);
  bool Reads(int i, bool training) const override { return i == (training ? 0 : 1); }
  absl::Status Gradient(GradientBuilder& builder) const override;
};

}  // namespace shoal
