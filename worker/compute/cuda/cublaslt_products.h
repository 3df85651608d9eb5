#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/matrix_products.h"
#include "worker/compute/cuda/stream.h"

namespace shoal::cuda {

// By cuBLASLt, in float32 throughout: no TF32. Each kernel's algorithm is the first of those that
// cuBLASLt's heuristics name, so that the same product has the same bits each time on one kind of
// device. `stream`, on the current device, outlives it. kFailedPrecondition where cuBLASLt is not
// to be had (CublasLtLibrary).
absl::StatusOr<std::unique_ptr<MatrixProducts>> CreateCublasLtProducts(const Stream* stream);

}  // namespace shoal::cuda
