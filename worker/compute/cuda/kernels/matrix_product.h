#pragma once

#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/cuda/matrix_products.h"

namespace shoal::cuda {

// A product of matrices by plain sums: what the tests compare cuBLASLt with, and compute with where
// it is not.
struct MatrixProductKernel {
  MatrixProduct product;
  const float* a;
  const float* b;
  const float* bias;  // null: none
  float* c;

  int64_t items() const { return product.m * product.n; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const int64_t row = item / product.n, column = item % product.n;
    double sum = bias == nullptr ? 0 : bias[column];
    for (int64_t i = 0; i < product.k; ++i) {
      const float left = a[product.transpose_a ? i * product.m + row : row * product.k + i];
      sum +=
          double{left} * b[product.transpose_b ? column * product.k + i : i * product.n + column];
    }
    c[item] = static_cast<float>(sum);
  }
};

}  // namespace shoal::cuda
