#pragma once

#include <cstdint>

#include "common/model/op.h"

namespace shoal {

// (x) -> x in inference; in training, each element of an example is kept with probability 1 - rate
// and scaled by 1 / (1 - rate). The mask is a pure function of (job seed, step, layer_seed,
// position in the batch), so that a step computed twice is the same.
struct DropoutOp : Op {
  double rate = 0;
  uint64_t layer_seed = 0;
  SHOAL_OP(Dropout);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (dy) -> dx, by the mask of the forward op
struct DropoutBackwardOp : Op {
  double rate = 0;
  uint64_t layer_seed = 0;
  SHOAL_OP(DropoutBackward);
};

}  // namespace shoal
