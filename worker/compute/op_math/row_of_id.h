#pragma once

#include <cmath>
#include <cstdint>

#include "worker/compute/op_math/host_device.h"

namespace shoal {

// Returns the table row for an id held as a floating-point number; -1 if it is no row of a table of
// `rows`.
template <typename Scalar>
SHOAL_HOST_DEVICE int64_t RowOfId(Scalar id, int64_t rows) {
  // Not-a-number also fails these comparisons.
  return id >= 0 && id < static_cast<Scalar>(rows) && id == std::floor(id)
             ? static_cast<int64_t>(id)
             : -1;
}

}  // namespace shoal
