#pragma once

#include <cstdint>

namespace shoal {

// The per-row value of a metric that is a mean over rows of predictions, as data: devices have
// kernels for these.
struct RowScore {
  enum class Kind {
    kClassIsLargest,     // 1 if the first of the largest predictions is that of the class
    kLargestIsLargest,   // 1 if it is at the first of the target's largest elements
    kClassInTopK,        // 1 if the class is among the k largest, ties included
    kLargestInTopK,      // the same for the first of the target's largest elements
    kSideOfThreshold,    // the share of predictions that are above it exactly if the target is 1
    kMeanSquaredError,   //
    kMeanAbsoluteError,  //
  };
  Kind kind;
  uint64_t k = 0;
  float threshold = 0;

  // Whether the target is a class number, one per row, instead of a row of values.
  bool of_class() const { return kind == Kind::kClassIsLargest || kind == Kind::kClassInTopK; }
};

}  // namespace shoal
