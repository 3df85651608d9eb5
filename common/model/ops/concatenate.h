#pragma once

#include "common/model/op.h"

namespace shoal {

// (x1, x2, ...), equal in all axes but `axis` -> their concatenation along it
struct ConcatenateOp : Op {
  int axis = 1;  // not the first
  SHOAL_OP(Concatenate);
  bool KeepsWholeNumbers() const override { return true; }
  absl::Status Gradient(GradientBuilder& builder) const override;
};

}  // namespace shoal
