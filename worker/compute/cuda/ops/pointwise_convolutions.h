#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/cublaslt/matrix_products.h"
#include "worker/compute/cuda/cudnn/convolutions.h"
#include "worker/compute/cuda/tuning/algorithm_tuner.h"

namespace shoal::cuda {

// Returns a pointwise convolution (1x1, without strides, padding and groups) as a matrix product:
// the rows are the pixels of an image, the columns its channels. Returns nothing for other
// convolutions and for those with a fused ReLU.
std::optional<MatrixProduct> ProductOf(const ConvolutionGraph& graph);

// Times a kernel, which takes these tensors and then a workspace.
using KernelTimer = std::function<absl::StatusOr<AlgorithmTrial>(
    std::span<const TrialTensor> tensors, int64_t workspace_bytes, Kernel& kernel)>;

struct PointwiseOptions {
  MatrixProducts* products = nullptr;
  std::unique_ptr<Convolutions> others;
  // Chooses between the two in training steps, by `measure`. Null: products compute all of them,
  // which gives the same bits every time.
  AlgorithmTuner* tuner = nullptr;
  KernelTimer measure = {};
};

// Computes pointwise convolutions as products, unless `others` are faster, and everything else by
// `others`. The pointers in `options` must outlive the result.
std::unique_ptr<Convolutions> CreatePointwiseConvolutions(PointwiseOptions options);

}  // namespace shoal::cuda
