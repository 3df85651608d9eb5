#pragma once

#include <cublasLt.h>

#include <memory>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/matrix_products.h"
#include "worker/compute/cuda/stream.h"

namespace shoal::cuda {

// How cuBLASLt is to multiply operands of this type. Sums are float32.
cublasComputeType_t ComputeTypeOf(ComputeDtype operands, bool tf32);

// By cuBLASLt; `tf32`: of float32, too, by tensor cores (ComputeFreedoms). Each kernel's algorithm
// is the first of those that cuBLASLt's heuristics name, so that the same product has the same bits
// each time on one kind of device. `stream`, on the current device, outlives it.
// kFailedPrecondition where cuBLASLt is not to be had (CublasLtLibrary).
absl::StatusOr<std::unique_ptr<MatrixProducts>> CreateCublasLtProducts(const Stream* stream,
                                                                       bool tf32);

}  // namespace shoal::cuda
