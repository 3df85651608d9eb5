#pragma once

#include "common/model/compute_dtype.h"
#include "worker/compute/op_math/bfloat16.h"

namespace shoal::cpu {

// Calls use(element) with a value of the C++ type for `type`: float or BFloat16. Loops read an
// element by ToFloat() and store it by FromFloat<Element>(); their arithmetic is in float.
template <typename Use>
void WithElement(ComputeDtype type, const Use& use) {
  if (type == ComputeDtype::kBfloat16) {
    use(BFloat16());
  } else {
    use(float());
  }
}

}  // namespace shoal::cpu
