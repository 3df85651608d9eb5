#include "common/model/compute_dtype.h"

namespace shoal {

const char* NameOf(ComputeDtype compute_dtype) {
  switch (compute_dtype) {
    case ComputeDtype::kFloat32:
      break;
    case ComputeDtype::kBfloat16:
      return "bfloat16";
    case ComputeDtype::kFloat16:
      return "float16";
  }
  return "float32";
}

}  // namespace shoal
