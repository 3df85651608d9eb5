#include "worker/compute/cpu/reduction_parts.h"

#include <algorithm>

namespace shoal::cpu {
namespace {

// Elements of x in a part: enough to wake a thread for, few enough for the cache.
constexpr int64_t kPartElements = 1 << 15;

}  // namespace

ReductionParts::ReductionParts(const Shape& x, const Shape& y) {
  int64_t stride = 1;
  bool has_columns = false, before_kept = false;
  for (size_t axis = 1; axis <= x.size(); ++axis) {
    const int64_t extent = x[x.size() - axis];
    if (extent == 1) continue;
    const bool kept = axis <= y.size() && y[y.size() - axis] != 1;
    std::vector<Axis>& axes = kept ? kept_ : reduced_;
    if (!has_columns) {
      columns_kept_ = kept;
      columns_ = extent;
    } else if (kept != before_kept) {
      axes.push_back({extent, stride});
    } else {
      (axes.empty() ? columns_ : axes.back().extent) *= extent;
    }
    stride *= extent;
    has_columns = true;
    before_kept = kept;
  }
  for (const Axis& axis : kept_) places_ *= axis.extent;
  for (const Axis& axis : reduced_) rows_ *= axis.extent;
  width_ = std::clamp<int64_t>(columns_, 1, columns_kept_ ? kMaxKeptColumns : kPartElements);
  height_ = std::clamp<int64_t>(kPartElements / width_, 1, std::max<int64_t>(rows_, 1));
  row_parts_ = (rows_ + height_ - 1) / height_;
  column_parts_ = (columns_ + width_ - 1) / width_;
}

ReductionParts::Part ReductionParts::part(int64_t i) const {
  if (row_parts_ * column_parts_ == 1) {  // often of few elements: without divisions
    return {.place = i,
            .row_begin = 0,
            .row_end = rows_,
            .column = 0,
            .width = columns_,
            .result = columns_kept_ ? i * columns_ : i};
  }
  Part part = {.place = i / (row_parts_ * column_parts_)};
  const int64_t row_part = i / column_parts_ % row_parts_;
  part.row_begin = row_part * height_;
  part.row_end = std::min(rows_, part.row_begin + height_);
  part.column = i % column_parts_ * width_;
  part.width = std::min(width_, columns_ - part.column);
  part.result = columns_kept_ ? i / column_parts_ * columns_ + part.column : i;
  return part;
}

ReductionParts::Run ReductionParts::RunFrom(const Part& part, int64_t row) const {
  const int64_t first = OffsetOf(kept_, part.place) + OffsetOf(reduced_, row) + part.column;
  if (reduced_.empty()) return {first, 1, 0};
  const Axis& axis = reduced_.front();
  int64_t rows = part.row_end - row;
  if (reduced_.size() > 1) rows = std::min(rows, axis.extent - row % axis.extent);
  return {first, rows, axis.stride};
}

int64_t ReductionParts::part_elements() const { return height_ * width_; }

int64_t ReductionParts::OffsetOf(const std::vector<Axis>& axes, int64_t index) {
  int64_t offset = 0;
  for (size_t i = 0; i + 1 < axes.size(); ++i) {
    offset += index % axes[i].extent * axes[i].stride;
    index /= axes[i].extent;
  }
  if (!axes.empty()) offset += index * axes.back().stride;
  return offset;
}

}  // namespace shoal::cpu
