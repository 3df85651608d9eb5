#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/convolutions.h"
#include "worker/compute/cuda/matrix_products.h"

namespace shoal::cuda {

// What a convolution of single pixels, 1x1 and without strides, padding and groups, multiplies: the
// pixels of an image are the rows of a matrix, its channels the columns. None for what is no such
// convolution, and for one with a ReLU behind it.
std::optional<MatrixProduct> ProductOf(const ConvolutionGraph& graph);

// How long a kernel of a graph takes, in any unit.
using ConvolutionTimer = std::function<absl::StatusOr<double>(
    const ConvolutionGraph& graph, int64_t workspace_bytes, Kernel& kernel)>;

// Convolutions of single pixels as products, of a step only where `measure` says that `others` are
// not faster; all else by `others`. An empty `measure`: as products always, which have the same
// bits whenever they are computed. `products` outlives this.
std::unique_ptr<Convolutions> CreatePointwiseConvolutions(MatrixProducts* products,
                                                          std::unique_ptr<Convolutions> others,
                                                          ConvolutionTimer measure);

}  // namespace shoal::cuda
