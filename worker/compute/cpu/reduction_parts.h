#pragma once

#include <cstdint>
#include <vector>

#include "common/base/shape.h"

namespace shoal::cpu {

// A reduction of a row-major tensor x to y (see SumToOp), cut into parts. The cut depends on the
// shapes alone. So the order of sums is the same for each number of threads. Neighbouring axes that
// are both kept or both reduced count as one. The last such axis gives the columns of x's rows.
// A place is a run of y: `columns` elements if the columns are kept, else one.
class ReductionParts {
 public:
  // Rows of x that lie `stride` floats apart, cut to the columns of a part.
  struct Run {
    int64_t first;  // index of the first element
    int64_t rows;
    int64_t stride;
  };
  // Rows [row_begin, row_end) of those for a place, `width` columns of each.
  struct Part {
    int64_t place;
    int64_t row_begin, row_end;
    int64_t column, width;
    int64_t result;  // index of its first result
  };

  // At most this many columns of a part if the columns are kept.
  static constexpr int64_t kMaxKeptColumns = 256;

  // Requires shapes without kBatch, where `y` broadcasts to `x`.
  ReductionParts(const Shape& x, const Shape& y);

  bool columns_kept() const { return columns_kept_; }
  // Whether part i is row i of x, and its result is element i of y.
  bool are_rows() const { return !columns_kept_ && reduced_.empty() && column_parts_ == 1; }
  int64_t columns() const { return columns_; }
  int64_t count() const { return places_ * row_parts_ * column_parts_; }
  Part part(int64_t i) const;
  // The rows of a part from `row` on, as far as their distance stays the same.
  Run RunFrom(const Part& part, int64_t row) const;
  // Elements of x in a whole part.
  int64_t part_elements() const;

  // Results of all parts, for each element of y: results_of_each(). They lie results_stride()
  // apart. With one result for each element, the parts' results are y.
  int64_t results_of_each() const {
    return columns_kept_ ? row_parts_ : row_parts_ * column_parts_;
  }
  int64_t results_stride() const { return columns_kept_ ? columns_ : 1; }
  int64_t result_count() const { return places_ * results_of_each() * results_stride(); }
  // The first result for the element `i` of y.
  int64_t FirstResult(int64_t i) const {
    const int64_t stride = results_stride();
    return i / stride * results_of_each() * stride + i % stride;
  }

 private:
  struct Axis {
    int64_t extent;
    int64_t stride;  // floats
  };
  static int64_t OffsetOf(const std::vector<Axis>& axes, int64_t index);

  bool columns_kept_ = true;
  int64_t columns_ = 1;
  std::vector<Axis> kept_;     // without the columns, innermost first
  std::vector<Axis> reduced_;  // likewise
  int64_t places_ = 1;
  int64_t rows_ = 1;  // for each place
  int64_t height_ = 1, width_ = 1;
  int64_t row_parts_ = 1, column_parts_ = 1;
};

}  // namespace shoal::cpu
