#pragma once

#include <cstdint>

#include "common/model/compute_dtype.h"
#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/op_math/bfloat16.h"

namespace shoal::cuda {

// c [m, n] = op(a) op(b), row-major, where op(a) is [m, k] and op(b) is [k, n]. A transposed
// operand is stored with its axes swapped. An optional bias [n] of c's type is added to every row.
// Sums are in float32.
struct MatrixProduct {
  ComputeDtype operands = ComputeDtype::kFloat32;
  ComputeDtype result = ComputeDtype::kFloat32;  // the operands', or float32
  bool transpose_a = false;
  bool transpose_b = false;
  bool bias = false;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
};

// A matrix product by plain sums. Tests compare cuBLASLt with it, and use it on machines without
// cuBLASLt.
template <typename Operand, typename Result>
struct MatrixProductKernel {
  MatrixProduct product;
  const Operand* a;
  const Operand* b;
  const Result* bias;  // null: none
  Result* c;

  int64_t items() const { return product.m * product.n; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const int64_t row = item / product.n, column = item % product.n;
    double sum = bias == nullptr ? 0 : ToFloat(bias[column]);
    for (int64_t i = 0; i < product.k; ++i) {
      const double left =
          ToFloat(a[product.transpose_a ? i * product.m + row : row * product.k + i]);
      sum +=
          left * ToFloat(b[product.transpose_b ? column * product.k + i : i * product.n + column]);
    }
    c[item] = FromFloat<Result>(static_cast<float>(sum));
  }
};

}  // namespace shoal::cuda
