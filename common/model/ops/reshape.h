#pragma once

#include "common/base/shape.h"
#include "common/model/op.h"

namespace shoal {

// (x) -> the same elements in `shape`. kBatch leads `shape` exactly if it leads x's shape.
struct ReshapeOp : Op {
  Shape shape;
  SHOAL_OP(Reshape);
  bool KeepsWholeNumbers() const override { return true; }
  absl::Status Gradient(GradientBuilder& builder) const override;
};

}  // namespace shoal
