#pragma once

#include <cstdint>

#include "common/base/shape.h"

namespace shoal::reference {

// Returns the index, in a tensor of `shape`, of the value that element `i` of `repeated` repeats
// (defined at BinaryOp).
inline int64_t RepeatedIndex(int64_t i, const Shape& shape, const Shape& repeated) {
  int64_t index = 0, stride = 1;
  for (size_t axis = 1; axis <= repeated.size(); ++axis) {
    const int64_t extent = repeated[repeated.size() - axis];
    if (axis <= shape.size() && shape[shape.size() - axis] != 1) {
      index += i % extent * stride;
      stride *= extent;
    }
    i /= extent;
  }
  return index;
}

}  // namespace shoal::reference
