#pragma once

#include "common/base/shape.h"
#include "common/model/op.h"

namespace shoal {

// (table [V, D], ids [...]) -> [..., D]: the rows of the table with these ids. An invalid id, which
// is not a whole number from 0 to V - 1, yields not-a-number, as in JAX.
struct GatherOp : Op {
  SHOAL_OP(Gather);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (ids, dy) -> dtable
struct GatherBackwardOp : Op {
  Shape table_shape;
  SHOAL_OP(GatherBackward);
};

}  // namespace shoal
