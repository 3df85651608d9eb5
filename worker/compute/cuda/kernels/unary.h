#pragma once

#include "common/model/ops/unary.h"
#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/op_math/elementwise_functions.h"

// Not worth packs. Still bound by bandwidth.

namespace shoal::cuda {

// UnaryOp's attributes, without its host-only members.
struct UnaryAttributes {
  UnaryOp::Kind kind;
  double exponent;
  double low;
  double high;
};

struct UnaryKernel {
  UnaryAttributes attributes;
  const float* x;
  float* y;
  int64_t count;

  int64_t items() const { return count; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    y[item] = shoal::Unary(attributes, x[item]);
  }
};

}  // namespace shoal::cuda
