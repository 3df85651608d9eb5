#pragma once

#include <cstdint>
#include <vector>

#include "common/base/shape.h"

namespace shoal::cpu {

// How tensors whose values are repeated to give a common shape (BinaryOp says how) are walked
// through: neighbouring axes along which each of them either goes on or is repeated become one, and
// the last of those is the columns of `rows` rows.
class Repetition {
 public:
  // `shapes` without kBatch; each can be repeated to give `repeated`.
  Repetition(const Shape& repeated, const std::vector<Shape>& shapes);

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  // Floats from one column to the next of tensor `t`: 1, or 0 where it is repeated.
  int64_t column_stride(int t) const { return column_strides_[t]; }
  // Where row `row` of tensor `t` begins.
  int64_t RowOffset(int t, int64_t row) const;

 private:
  int64_t rows_ = 1;
  int64_t columns_ = 1;
  std::vector<int64_t> extents_;  // of the axes before the columns, innermost first
  std::vector<int64_t> column_strides_;
  std::vector<std::vector<int64_t>> strides_;  // by tensor, then as extents_
};

}  // namespace shoal::cpu
