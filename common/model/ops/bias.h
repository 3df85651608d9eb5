#pragma once

#include "common/model/op.h"

namespace shoal {

// (dy [..., N]) -> dbias [N], the sum over all other axes
struct BiasBackwardOp : Op {
  SHOAL_OP(BiasBackward);
};

}  // namespace shoal
