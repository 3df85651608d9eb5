#pragma once

#include <cstdint>

namespace shoal {

// What a metric that is the mean of a number for each row of predictions gives a row, as data: for
// devices, which have kernels for these.
struct RowScore {
  enum class Kind {
    kClassIsLargest,     // 1 where the first of the largest predictions is that of the class
    kLargestIsLargest,   // 1 where it is that of the first of the target's largest
    kClassInTopK,        // 1 where the class is among the k largest, equal ones included
    kLargestInTopK,      // the same of the first of the target's largest
    kSideOfThreshold,    // the share of predictions that are above it where the target is 1, else 0
    kMeanSquaredError,   //
    kMeanAbsoluteError,  //
  };
  Kind kind;
  uint64_t k = 0;
  float threshold = 0;

  // Whether the target is the number of a class, one for each row, and not as long as the row.
  bool of_class() const { return kind == Kind::kClassIsLargest || kind == Kind::kClassInTopK; }
};

}  // namespace shoal
