#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/convolutions.h"
#include "worker/compute/cuda/matrix_products.h"
#include "worker/compute/cuda/plan_tuner.h"

namespace shoal::cuda {

// What a convolution of single pixels, 1x1 and without strides, padding and groups, multiplies: the
// pixels of an image are the rows of a matrix, its channels the columns. None for what is no such
// convolution, and for one with a ReLU behind it.
std::optional<MatrixProduct> ProductOf(const ConvolutionGraph& graph);

// Tries out a kernel, which is given these tensors and then a workspace.
using KernelTimer = std::function<absl::StatusOr<Trial>(std::span<const TrialTensor> tensors,
                                                        int64_t workspace_bytes, Kernel& kernel)>;

struct PointwiseOptions {
  MatrixProducts* products = nullptr;
  std::unique_ptr<Convolutions> others;
  // Chooses between the two by `measure`, in steps; null: all are products, which have the same
  // bits whenever they are computed.
  PlanTuner* tuner = nullptr;
  KernelTimer measure = {};
};

// Convolutions of single pixels as products, unless `others` are faster; all else by `others`. What
// is pointed to outlives this.
std::unique_ptr<Convolutions> CreatePointwiseConvolutions(PointwiseOptions options);

}  // namespace shoal::cuda
