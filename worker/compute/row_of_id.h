#pragma once

#include <cmath>
#include <cstdint>

#include "worker/compute/host_device.h"

namespace shoal {

// The row of a table of `rows` that an id, held as a floating-point number, stands for; -1: none.
template <typename Scalar>
SHOAL_HOST_DEVICE int64_t RowOfId(Scalar id, int64_t rows) {
  // A comparison that not-a-number fails too.
  return id >= 0 && id < static_cast<Scalar>(rows) && id == std::floor(id)
             ? static_cast<int64_t>(id)
             : -1;
}

}  // namespace shoal
