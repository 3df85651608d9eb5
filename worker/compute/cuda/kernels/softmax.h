#pragma once

#include <cmath>

#include "common/model/ops/softmax.h"
#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/cuda/kernels/row_groups.h"
#include "worker/compute/op_math/bfloat16.h"

// Bound by bandwidth: a row comes from memory once and then from the cache, because it has only a
// few kilobytes.

namespace shoal::cuda {

// SoftmaxOp, along rows of `columns`. `y` may be `x`.
template <typename Element, int group>
struct SoftmaxKernel {
  using Groups = RowGroups<group>;
  static constexpr int kThreads = Groups::kThreads;
  static constexpr int kPhases = 3;
  struct Shared {
    float largest[kThreads];
    float sum[kThreads];
  };
  struct ThreadState {
    float largest;
  };

  SoftmaxOp::Kind kind;
  const Element* x;
  Element* y;
  int64_t rows;
  int64_t columns;

  int64_t blocks() const { return Groups::Blocks(rows); }

  template <int phase>
  SHOAL_HOST_DEVICE void Run(const ThreadPosition& place, Shared& shared, ThreadState& own) const {
    const int thread = place.thread;
    const int64_t row = Groups::Row(place.block, thread);
    if (row >= rows) return;
    const int64_t first = row * columns + Groups::Lane(thread), end = (row + 1) * columns;
    if constexpr (phase == 0) {
      float largest = -INFINITY;
      for (int64_t i = first; i < end; i += group) {
        const float value = ToFloat(x[i]);
        if (value > largest || value != value) largest = value;
      }
      shared.largest[thread] = largest;
    } else if constexpr (phase == 1) {
      own.largest = Groups::Largest(shared.largest, thread);
      float sum = 0;
      for (int64_t i = first; i < end; i += group) sum += std::exp(ToFloat(x[i]) - own.largest);
      shared.sum[thread] = sum;
    } else {
      const float sum = Groups::Sum(shared.sum, thread);
      const float log = std::log(sum);
      for (int64_t i = first; i < end; i += group) {
        const float value = ToFloat(x[i]) - own.largest;
        y[i] = FromFloat<Element>(kind == SoftmaxOp::Kind::kSoftmax ? std::exp(value) / sum
                                                                    : value - log);
      }
    }
  }
};

// SoftmaxBackwardOp. `dx` may be `dy`.
template <typename Element, int group>
struct SoftmaxBackwardKernel {
  using Groups = RowGroups<group>;
  static constexpr int kThreads = Groups::kThreads;
  static constexpr int kPhases = 2;
  struct Shared {
    float sum[kThreads];
  };
  struct ThreadState {};

  SoftmaxOp::Kind kind;
  const Element* y;
  const Element* dy;
  Element* dx;
  int64_t rows;
  int64_t columns;

  int64_t blocks() const { return Groups::Blocks(rows); }

  template <int phase>
  SHOAL_HOST_DEVICE void Run(const ThreadPosition& place, Shared& shared, ThreadState&) const {
    const int thread = place.thread;
    const int64_t row = Groups::Row(place.block, thread);
    if (row >= rows) return;
    const int64_t first = row * columns + Groups::Lane(thread), end = (row + 1) * columns;
    const bool logarithm = kind != SoftmaxOp::Kind::kSoftmax;
    if constexpr (phase == 0) {
      float sum = 0;
      for (int64_t i = first; i < end; i += group) {
        sum += logarithm ? ToFloat(dy[i]) : ToFloat(y[i]) * ToFloat(dy[i]);
      }
      shared.sum[thread] = sum;
    } else {
      const float sum = Groups::Sum(shared.sum, thread);
      for (int64_t i = first; i < end; i += group) {
        const float out = ToFloat(y[i]), gradient = ToFloat(dy[i]);
        dx[i] =
            FromFloat<Element>(logarithm ? gradient - std::exp(out) * sum : out * (gradient - sum));
      }
    }
  }
};

}  // namespace shoal::cuda
