#pragma once

#include "common/model/op.h"

namespace shoal {

// (x1, x2, ...) of one shape -> sum
struct AddOp : Op {
  SHOAL_OP(Add);
  // The sum of integers is an integer.
  bool KeepsWholeNumbers() const override { return true; }
  absl::Status Gradient(GradientBuilder& builder) const override;
};

}  // namespace shoal
