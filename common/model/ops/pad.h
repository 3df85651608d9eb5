#pragma once

#include <cstdint>
#include <vector>

#include "common/base/shape.h"
#include "common/model/op.h"

namespace shoal {

// The distances of a smaller box from the sides of a larger one, for each axis but the first.
struct Margins {
  std::vector<int64_t> before;
  std::vector<int64_t> after;
};

// (x) -> x surrounded by zeros
struct PadOp : Op {
  Margins margins;
  SHOAL_OP(Pad);
  bool KeepsWholeNumbers() const override { return true; }
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (x) -> x without its margins
struct CropOp : Op {
  Margins margins;
  SHOAL_OP(Crop);
  bool KeepsWholeNumbers() const override { return true; }
  absl::Status Gradient(GradientBuilder& builder) const override;
};

}  // namespace shoal
