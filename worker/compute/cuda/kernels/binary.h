#pragma once

#include "common/model/ops/binary.h"
#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/cuda/kernels/pack.h"
#include "worker/compute/cuda/kernels/strided.h"
#include "worker/compute/op_math/elementwise_functions.h"

namespace shoal::cuda {

// BinaryOp of two tensors of the same shape; a sum of more tensors takes several. `y` may be one of
// the operands. Bound by bandwidth.
template <BinaryOp::Kind kind, typename Element, int width>
struct BinaryKernel {
  const Element* a;
  const Element* b;
  int64_t size;  // a multiple of width
  Element* y;

  int64_t items() const { return size / width; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const int64_t at = int64_t{item} * width;
    Pack<width> pack = Load<width>(a + at);
    const Pack<width> other = Load<width>(b + at);
    for (int i = 0; i < width; ++i) pack[i] = shoal::Binary<kind>(pack[i], other[i]);
    Store(pack, y + at);
  }
};

// BinaryOp of tensors with repeated values.
template <BinaryOp::Kind kind>
struct RepeatedBinaryKernel {
  const float* a;
  StridedAxes a_axes;
  const float* b;
  StridedAxes b_axes;
  float* y;
  int64_t count;

  int64_t items() const { return count; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    y[item] = shoal::Binary<kind>(a[a_axes.Offset(item)], b[b_axes.Offset(item)]);
  }
};

}  // namespace shoal::cuda
