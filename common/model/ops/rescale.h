#pragma once

#include <vector>

#include "common/model/op.h"

namespace shoal {

// (x) -> x * scale + offset, each with one value, or one per channel (last axis)
struct RescaleOp : Op {
  std::vector<double> scale = {1};
  std::vector<double> offset = {0};
  SHOAL_OP(Rescale);
  absl::Status Gradient(GradientBuilder& builder) const override;
};

}  // namespace shoal
