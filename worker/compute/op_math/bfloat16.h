#pragma once

#include <cstdint>
#include <cstring>

#include "worker/compute/op_math/host_device.h"

namespace shoal {

// The upper half of a float: the type of tensors under mixed_bfloat16. All arithmetic is in float.
struct BFloat16 {
  uint16_t bits;
};

SHOAL_HOST_DEVICE inline float ToFloat(float value) { return value; }
SHOAL_HOST_DEVICE inline float ToFloat(uint8_t value) { return value; }
SHOAL_HOST_DEVICE inline float ToFloat(BFloat16 value) {
  const uint32_t bits = uint32_t{value.bits} << 16;
  float result;
  memcpy(&result, &bits, sizeof(result));
  return result;
}

// Rounds to nearest, ties to even; not-a-number stays not-a-number.
template <typename Element>
SHOAL_HOST_DEVICE Element FromFloat(float value);
template <>
SHOAL_HOST_DEVICE inline float FromFloat<float>(float value) {
  return value;
}
template <>
SHOAL_HOST_DEVICE inline BFloat16 FromFloat<BFloat16>(float value) {
#ifdef __CUDA_ARCH__
  uint16_t result;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result) : "f"(value));
  return {result};
#else
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  if (value != value) return {0x7fff};
  return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
#endif
}

}  // namespace shoal
