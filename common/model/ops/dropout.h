#pragma once

#include <cstdint>

#include "common/model/op.h"

namespace shoal {

// Which elements are kept or dropped together: element i goes the way of element
// i / block * period + i % period of a smaller tensor. A block of 1: each goes its own.
struct DropoutGroups {
  int64_t block = 1;
  int64_t period = 1;  // <= block

  int64_t Of(int64_t element) const { return element / block * period + element % period; }
};

// (x) -> x in inference; in training, each element, or group of them, is kept with probability 1 -
// rate and scaled by 1 / (1 - rate). The mask is a pure function of (job seed, step, layer_seed,
// position in the step's batch), so that a step computed twice is the same.
struct DropoutOp : Op {
  double rate = 0;
  uint64_t layer_seed = 0;
  DropoutGroups groups;
  SHOAL_OP(Dropout);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (dy) -> dx, by the mask of the forward op
struct DropoutBackwardOp : Op {
  double rate = 0;
  uint64_t layer_seed = 0;
  DropoutGroups groups;
  SHOAL_OP(DropoutBackward);
};

}  // namespace shoal
