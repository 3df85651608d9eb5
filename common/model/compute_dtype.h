#pragma once

#include <cstdint>

namespace shoal {

// The type that a layer computes in, by its dtype policy in Keras: float32, or the compute dtype of
// mixed_bfloat16 and mixed_float16. Variables are float32 under every policy.
enum class ComputeDtype { kFloat32, kBfloat16, kFloat16 };

// Bytes of an element.
inline int64_t SizeOf(ComputeDtype compute_dtype) {
  return compute_dtype == ComputeDtype::kFloat32 ? 4 : 2;
}

// Keras's name of it: "bfloat16".
const char* NameOf(ComputeDtype compute_dtype);

}  // namespace shoal
