#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "common/model/ops/softmax.h"

// SoftmaxOp for one row.

namespace shoal {

// `y` may be `x`.
template <typename Scalar>
void SoftmaxRow(SoftmaxOp::Kind kind, const Scalar* x, int64_t columns, Scalar* y) {
  const Scalar largest = *std::max_element(x, x + columns);
  Scalar sum = 0;
  for (int64_t i = 0; i < columns; ++i) sum += y[i] = std::exp(x[i] - largest);
  if (kind == SoftmaxOp::Kind::kSoftmax) {
    for (int64_t i = 0; i < columns; ++i) y[i] /= sum;
  } else {
    const Scalar log = std::log(sum);
    for (int64_t i = 0; i < columns; ++i) y[i] = x[i] - largest - log;
  }
}

template <typename Scalar>
void SoftmaxBackwardRow(SoftmaxOp::Kind kind, const Scalar* y, const Scalar* dy, int64_t columns,
                        Scalar* dx) {
  Scalar sum = 0;
  if (kind == SoftmaxOp::Kind::kSoftmax) {
    for (int64_t i = 0; i < columns; ++i) sum += y[i] * dy[i];
    for (int64_t i = 0; i < columns; ++i) dx[i] = y[i] * (dy[i] - sum);
  } else {
    for (int64_t i = 0; i < columns; ++i) sum += dy[i];
    for (int64_t i = 0; i < columns; ++i) dx[i] = dy[i] - std::exp(y[i]) * sum;
  }
}

}  // namespace shoal
