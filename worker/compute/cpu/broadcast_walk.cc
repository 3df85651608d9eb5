#include "worker/compute/cpu/broadcast_walk.h"

namespace shoal::cpu {

BroadcastWalk::BroadcastWalk(const Shape& repeated, const std::vector<Shape>& shapes)
    : column_strides_(shapes.size()), strides_(shapes.size()) {
  std::vector<int64_t> sizes(shapes.size(), 1);  // elements in the axes so far, by tensor
  std::vector<bool> before;                      // which tensors advance along the previous axis
  bool has_columns = false;
  for (size_t axis = 1; axis <= repeated.size(); ++axis) {
    const int64_t extent = repeated[repeated.size() - axis];
    if (extent == 1) continue;
    std::vector<bool> goes_on;
    for (const Shape& shape : shapes) {
      goes_on.push_back(axis <= shape.size() && shape[shape.size() - axis] != 1);
    }
    if (!has_columns) {
      for (size_t t = 0; t < shapes.size(); ++t) column_strides_[t] = goes_on[t] ? 1 : 0;
      columns_ = extent;
    } else if (goes_on == before) {
      (extents_.empty() ? columns_ : extents_.back()) *= extent;
    } else {
      for (size_t t = 0; t < shapes.size(); ++t) strides_[t].push_back(goes_on[t] ? sizes[t] : 0);
      extents_.push_back(extent);
    }
    for (size_t t = 0; t < shapes.size(); ++t) sizes[t] *= goes_on[t] ? extent : 1;
    has_columns = true;
    before = goes_on;
  }
  for (const int64_t extent : extents_) rows_ *= extent;
}

int64_t BroadcastWalk::RowOffset(int t, int64_t row) const {
  int64_t offset = 0;
  for (size_t i = 0; i < extents_.size(); ++i) {
    offset += row % extents_[i] * strides_[t][i];
    row /= extents_[i];
  }
  return offset;
}

}  // namespace shoal::cpu
