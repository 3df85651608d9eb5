#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shoal {

// Extents of a tensor, outermost first. In a model graph a leading kBatch stands for the number of
// examples in a batch, which is known only when a batch is.
using Shape = std::vector<int64_t>;
inline constexpr int64_t kBatch = -1;

// Product of the extents; 1 for a scalar. Every extent must be known (>= 0).
int64_t ElementCount(const Shape& shape);

// "(None, 28, 28, 1)", as Keras prints shapes; kBatch prints as None.
std::string ShapeToString(const Shape& shape);

}  // namespace shoal
