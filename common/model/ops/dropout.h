#pragma once

#include <cstdint>

#include "common/model/op.h"

namespace shoal {

// Groups of elements that are kept or dropped together. Element i belongs to group i / block *
// period + i % period. With a block of 1, each element is a group of its own.
struct DropoutGroups {
  int64_t block = 1;
  int64_t period = 1;  // <= block

  int64_t Of(int64_t element) const { return element / block * period + element % period; }
};

// (x) -> x in inference. In training, each group of elements is kept with probability 1 - rate and
// scaled by 1 / (1 - rate). The mask is a pure function of (job seed, step, layer_seed, position in
// the step's batch). A step that is computed twice therefore gets the same mask.
struct DropoutOp : Op {
  double rate = 0;
  uint64_t layer_seed = 0;
  DropoutGroups groups;
  SHOAL_OP(Dropout);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (dy) -> dx, with the mask of the forward op
struct DropoutBackwardOp : Op {
  double rate = 0;
  uint64_t layer_seed = 0;
  DropoutGroups groups;
  SHOAL_OP(DropoutBackward);
};

}  // namespace shoal
