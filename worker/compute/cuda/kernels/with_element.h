#pragma once

#include "common/model/compute_dtype.h"
#include "worker/compute/op_math/bfloat16.h"
#include "worker/compute/op_math/float16.h"

namespace shoal::cuda {

// Calls use(element) with a value of the C++ type for `type`.
template <typename Use>
void WithElement(ComputeDtype type, const Use& use) {
  switch (type) {
    case ComputeDtype::kBfloat16:
      return use(BFloat16());
    case ComputeDtype::kFloat16:
      return use(Float16());
    case ComputeDtype::kFloat32:
      break;
  }
  use(float());
}

}  // namespace shoal::cuda
