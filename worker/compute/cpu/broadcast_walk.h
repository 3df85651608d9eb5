#pragma once

#include <cstdint>
#include <vector>

#include "common/base/shape.h"

namespace shoal::cpu {

// The loop over tensors that are repeated to a common shape (see BinaryOp). It merges neighbouring
// axes along which each tensor either advances or is repeated. The last merged axis gives the
// columns of `rows` rows.
class BroadcastWalk {
 public:
  // Requires `shapes` without kBatch that broadcast to `repeated`.
  BroadcastWalk(const Shape& repeated, const std::vector<Shape>& shapes);

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  // Floats from one column of tensor `t` to the next: 1, or 0 if it is repeated.
  int64_t column_stride(int t) const { return column_strides_[t]; }
  // The offset of row `row` of tensor `t`.
  int64_t RowOffset(int t, int64_t row) const;

 private:
  int64_t rows_ = 1;
  int64_t columns_ = 1;
  std::vector<int64_t> extents_;  // of the axes before the columns, innermost first
  std::vector<int64_t> column_strides_;
  std::vector<std::vector<int64_t>> strides_;  // by tensor, then as extents_
};

}  // namespace shoal::cpu
