#pragma once

#include <cstdint>
#include <cstring>

#include "worker/compute/op_math/bfloat16.h"

namespace shoal {

// IEEE 754's binary16, with 11 bits and numbers from 2^-24 to 65504: the type of tensors under
// mixed_float16. All arithmetic is in float.
struct Float16 {
  uint16_t bits;
};

SHOAL_HOST_DEVICE inline float ToFloat(Float16 value) {
#ifdef __CUDA_ARCH__
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
#else
  const uint32_t sign = uint32_t{value.bits & 0x8000u} << 16, magnitude = value.bits & 0x7fffu;
  float result;
  if (magnitude < 0x400) {  // subnormal
    result = static_cast<float>(magnitude) * 0x1p-24f;
    return sign == 0 ? result : -result;
  }
  const uint32_t exponent = magnitude < 0x7c00 ? 0x38000000u : 0x70000000u;  // 112, or to the max
  const uint32_t bits = sign | ((magnitude << 13) + exponent);
  memcpy(&result, &bits, sizeof(result));
  return result;
#endif
}

// Rounds to nearest, ties to even; infinite from 65520 on; not-a-number stays not-a-number.
template <>
SHOAL_HOST_DEVICE inline Float16 FromFloat<Float16>(float value) {
#ifdef __CUDA_ARCH__
  uint16_t result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result) : "f"(value));
  return {result};
#else
  if (value != value) return {0x7fff};
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  const uint32_t sign = bits >> 16 & 0x8000;
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude >= 0x477ff000) return {static_cast<uint16_t>(sign | 0x7c00)};
  if (magnitude < 0x38800000) {
    // Below 2^-14 half floats are 2^-24 apart, like floats from 1/2 on.
    float sum;
    memcpy(&sum, &magnitude, sizeof(sum));
    sum += 0.5f;
    memcpy(&magnitude, &sum, sizeof(sum));
    return {static_cast<uint16_t>(sign | (magnitude - 0x3f000000))};
  }
  magnitude += 0xfff + (magnitude >> 13 & 1);
  return {static_cast<uint16_t>(sign | (magnitude - 0x38000000) >> 13)};
#endif
}

}  // namespace shoal
