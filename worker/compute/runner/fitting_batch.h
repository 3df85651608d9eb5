#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"

namespace shoal {

// A batch that does not fit into a device's memory.
struct TooLargeBatch {
  int64_t examples = 0;
  int64_t needed_bytes = 0;
  int64_t available_bytes = 0;
};

// Returns the largest batch that fits, as far as a few probes can tell; 0 if not even one example
// fits. Each call of `bytes_of` plans a whole program, so only a few sizes are probed. Memory grows
// almost linearly with the examples, so these probes find the largest size or one near it.
absl::StatusOr<int64_t> LargestFittingBatch(
    const TooLargeBatch& batch, const std::function<absl::StatusOr<int64_t>(int64_t)>& bytes_of);

}  // namespace shoal
