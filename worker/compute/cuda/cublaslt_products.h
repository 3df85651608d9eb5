#pragma once

#include <cublasLt.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/matrix_products.h"
#include "worker/compute/cuda/plan_tuner.h"
#include "worker/compute/cuda/stream.h"

namespace shoal::cuda {

// How cuBLASLt is to multiply operands of this type. Sums are float32.
cublasComputeType_t ComputeTypeOf(ComputeDtype operands, bool tf32);

// Sixteen digits for each number of an algorithm, which mean something to one version of cuBLASLt
// alone; and back, nothing of another text.
std::string AlgorithmText(const cublasLtMatmulAlgo_t& algorithm);
std::optional<cublasLtMatmulAlgo_t> ParseAlgorithm(const std::string& text);

struct CublasLtOptions {
  const Stream* stream = nullptr;  // on the current device
  bool tf32 = false;               // of float32, too, by tensor cores (ComputeFreedoms)
  // Chooses the algorithms of a step. Null, and for what is of none: the first that cuBLASLt's
  // heuristics name, so that the same product has the same bits each time on one kind of device.
  PlanTuner* tuner = nullptr;
};

// By cuBLASLt, which gives the same bits each time with one algorithm. What is pointed to outlives
// it. kFailedPrecondition where cuBLASLt is not to be had (CublasLtLibrary).
absl::StatusOr<std::unique_ptr<MatrixProducts>> CreateCublasLtProducts(CublasLtOptions options);

}  // namespace shoal::cuda
