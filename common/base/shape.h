#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shoal {

// Extents of a tensor, outermost first. In a model graph, a leading kBatch means the number of
// examples in a batch, which the graph does not know.
using Shape = std::vector<int64_t>;
inline constexpr int64_t kBatch = -1;

// Returns the product of the extents; 1 for a scalar. Requires known extents (>= 0).
int64_t ElementCount(const Shape& shape);

// "(None, 28, 28, 1)": Keras's form of shapes. kBatch prints as None.
std::string ShapeToString(const Shape& shape);

}  // namespace shoal
