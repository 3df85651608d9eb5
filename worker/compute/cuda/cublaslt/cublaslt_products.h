#pragma once

#include <cublasLt.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/cublaslt/matrix_products.h"
#include "worker/compute/cuda/runtime/stream.h"
#include "worker/compute/cuda/tuning/algorithm_tuner.h"

namespace shoal::cuda {

// How cuBLASLt multiplies operands of this type. Sums are float32.
cublasComputeType_t ComputeTypeOf(ComputeDtype operands, bool tf32);

// The text of an algorithm: sixteen digits for each of its numbers. Only the same version of
// cuBLASLt understands them. ParseAlgorithm is the inverse; it returns nothing for any other text.
std::string AlgorithmText(const cublasLtMatmulAlgo_t& algorithm);
std::optional<cublasLtMatmulAlgo_t> ParseAlgorithm(const std::string& text);

struct CublasLtOptions {
  const Stream* stream = nullptr;  // on the current device
  bool tf32 = false;               // tensor cores may multiply float32, too (NumericsOptions)
  // Chooses the algorithms of training steps. If null, and for everything else, the first algorithm
  // of cuBLASLt's heuristics is used: the same product then has the same bits every time on one
  // kind of device.
  AlgorithmTuner* tuner = nullptr;
};

// Products by cuBLASLt, which gives the same bits every time with one algorithm. The pointers in
// `options` must outlive it. kFailedPrecondition if cuBLASLt is not available (CublasLtLibrary).
absl::StatusOr<std::unique_ptr<MatrixProducts>> CreateCublasLtProducts(CublasLtOptions options);

}  // namespace shoal::cuda
