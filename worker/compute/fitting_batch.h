#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"

namespace shoal {

// What is known of a batch that does not fit into a device's memory.
struct TooLargeBatch {
  int64_t examples = 0;
  int64_t needed_bytes = 0;
  int64_t available_bytes = 0;
};

// The largest batch that would fit, 0 where not even one example does; of those few sizes that
// `bytes_of` is asked about, as it plans a whole program each time. Memory grows nearly evenly with
// the examples, so that these lead to within one of the largest, or near it.
absl::StatusOr<int64_t> LargestFittingBatch(
    const TooLargeBatch& batch, const std::function<absl::StatusOr<int64_t>(int64_t)>& bytes_of);

}  // namespace shoal
