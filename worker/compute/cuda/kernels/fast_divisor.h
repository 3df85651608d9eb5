#pragma once

#include <cstdint>

#include "worker/compute/op_math/host_device.h"

namespace shoal::cuda {

// Divides by a number from 1 to 2^31 - 1 that is known before a kernel starts, with a product, a
// sum and a shift. A device has no integer division and takes 20 instructions for one. The dividend
// must not be negative (Granlund, Montgomery 1994, figure 4.1).
class FastDivisor {
 public:
  explicit FastDivisor(int32_t divisor = 1) : divisor_(divisor) {
    while ((int64_t{1} << shift_) < divisor) ++shift_;
    const uint64_t more = (uint64_t{1} << shift_) - static_cast<uint64_t>(divisor);
    multiplier_ = static_cast<uint32_t>((more << 32) / static_cast<uint64_t>(divisor) + 1);
  }

  SHOAL_HOST_DEVICE int32_t divisor() const { return divisor_; }

  SHOAL_HOST_DEVICE friend int32_t operator/(int32_t dividend, const FastDivisor& by) {
    const uint32_t n = static_cast<uint32_t>(dividend);
    const uint32_t high = static_cast<uint32_t>(uint64_t{by.multiplier_} * n >> 32);
    return static_cast<int32_t>((high + n) >> by.shift_);
  }
  SHOAL_HOST_DEVICE friend int32_t operator%(int32_t dividend, const FastDivisor& by) {
    return dividend - dividend / by * by.divisor_;
  }

 private:
  int32_t divisor_;
  uint32_t shift_ = 0;
  uint32_t multiplier_;
};

}  // namespace shoal::cuda
