#pragma once

#include <cstdint>
#include <vector>

#include "common/model/op.h"

namespace shoal {

// (like [B, ...], whose values are ignored) -> [B, n]: n random numbers for each example, number i
// in ranges[i]. They are a pure function of (job seed, step, layer_seed, position in the batch),
// with the same bits on every backend. A step that is computed again therefore gets the same
// numbers.
struct RandomUniformOp : Op {
  struct Range {
    double low = 0;
    double high = 1;
  };
  std::vector<Range> ranges = {{}};
  bool whole = false;         // whole numbers in [low, high)
  bool one_of_batch = false;  // all examples get the numbers of the first
  uint64_t layer_seed = 0;
  SHOAL_OP(RandomUniform);
  bool Reads(int, bool) const override { return false; }
  absl::Status Gradient(GradientBuilder& builder) const override;
};

}  // namespace shoal
