#pragma once

#include <cmath>

#include "worker/compute/cuda/kernels/column_sums.h"
#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/cuda/kernels/row_groups.h"
#include "worker/compute/op_math/bfloat16.h"

// LayerNormalizationOp along rows of `columns`; gamma and beta are float. Backward:
// LayerNormalizationBackwardKernel, then ColumnSumsKernel<LayerNormalizationTerms> and
// SumOfSlicesKernel<2> for dgamma and dbeta.
//
// Bound by bandwidth: a row comes from memory once and then from the cache, because it has only a
// few kilobytes. Backward reads x and dy twice, along rows and along columns.

namespace shoal::cuda {

// `y` may be `x`.
template <typename Element, int group>
struct LayerNormalizationKernel {
  using Groups = RowGroups<group>;
  static constexpr int kThreads = Groups::kThreads;
  static constexpr int kPhases = 3;
  struct Shared {
    float sum[kThreads];
    float squares[kThreads];
  };
  struct ThreadState {
    float mean;
  };

  const Element* x;
  const float* gamma;  // null: 1
  const float* beta;   // null: 0
  Element* y;
  int64_t rows;
  int64_t columns;
  float epsilon;

  int64_t blocks() const { return Groups::Blocks(rows); }

  template <int phase>
  SHOAL_HOST_DEVICE void Run(const ThreadPosition& place, Shared& shared, ThreadState& own) const {
    const int thread = place.thread;
    const int64_t row = Groups::Row(place.block, thread);
    if (row >= rows) return;
    const Element* from = x + row * columns;
    Element* to = y + row * columns;
    const int lane = Groups::Lane(thread);
    if constexpr (phase == 0) {
      float sum = 0;
      for (int64_t i = lane; i < columns; i += group) sum += ToFloat(from[i]);
      shared.sum[thread] = sum;
    } else if constexpr (phase == 1) {
      own.mean = Groups::Sum(shared.sum, thread) / columns;
      float squares = 0;
      for (int64_t i = lane; i < columns; i += group) {
        const float difference = ToFloat(from[i]) - own.mean;
        squares += difference * difference;
      }
      shared.squares[thread] = squares;
    } else {
      const float factor = 1 / std::sqrt(Groups::Sum(shared.squares, thread) / columns + epsilon);
      for (int64_t i = lane; i < columns; i += group) {
        const float normalized = (ToFloat(from[i]) - own.mean) * factor;
        to[i] = FromFloat<Element>(normalized * (gamma == nullptr ? 1 : gamma[i]) +
                                   (beta == nullptr ? 0 : beta[i]));
      }
    }
  }
};

// With xhat = (x - mean) factor and g = dy gamma: dx = factor (g - mean(g) - xhat mean(g xhat)).
// Stores mean and factor of each row for the next kernels.
template <typename Element, int group>
struct LayerNormalizationBackwardKernel {
  using Groups = RowGroups<group>;
  static constexpr int kThreads = Groups::kThreads;
  static constexpr int kPhases = 4;
  struct Shared {
    float sum[kThreads];
    float squares[kThreads];
    float gradient[kThreads];
    float product[kThreads];
  };
  struct ThreadState {
    float mean;
    float factor;
  };

  const Element* x;
  const Element* dy;
  const float* gamma;  // null: 1
  Element* dx;         // must not be dy
  float* row_mean;     // [rows]
  float* row_factor;   // [rows]
  int64_t rows;
  int64_t columns;
  float epsilon;

  int64_t blocks() const { return Groups::Blocks(rows); }

  template <int phase>
  SHOAL_HOST_DEVICE void Run(const ThreadPosition& place, Shared& shared, ThreadState& own) const {
    const int thread = place.thread;
    const int64_t row = Groups::Row(place.block, thread);
    if (row >= rows) return;
    const Element* from = x + row * columns;
    const Element* by = dy + row * columns;
    const int lane = Groups::Lane(thread);
    if constexpr (phase == 0) {
      float sum = 0;
      for (int64_t i = lane; i < columns; i += group) sum += ToFloat(from[i]);
      shared.sum[thread] = sum;
    } else if constexpr (phase == 1) {
      own.mean = Groups::Sum(shared.sum, thread) / columns;
      float squares = 0;
      for (int64_t i = lane; i < columns; i += group) {
        const float difference = ToFloat(from[i]) - own.mean;
        squares += difference * difference;
      }
      shared.squares[thread] = squares;
    } else if constexpr (phase == 2) {
      own.factor = 1 / std::sqrt(Groups::Sum(shared.squares, thread) / columns + epsilon);
      float gradients = 0, products = 0;
      for (int64_t i = lane; i < columns; i += group) {
        const float gradient = ToFloat(by[i]) * (gamma == nullptr ? 1 : gamma[i]);
        gradients += gradient;
        products += gradient * (ToFloat(from[i]) - own.mean) * own.factor;
      }
      shared.gradient[thread] = gradients;
      shared.product[thread] = products;
      if (lane == 0) {
        row_mean[row] = own.mean;
        row_factor[row] = own.factor;
      }
    } else {
      const float mean_gradient = Groups::Sum(shared.gradient, thread) / columns;
      const float mean_product = Groups::Sum(shared.product, thread) / columns;
      for (int64_t i = lane; i < columns; i += group) {
        const float gradient = ToFloat(by[i]) * (gamma == nullptr ? 1 : gamma[i]);
        const float normalized = (ToFloat(from[i]) - own.mean) * own.factor;
        dx[row * columns + i] =
            FromFloat<Element>(own.factor * (gradient - mean_gradient - normalized * mean_product));
      }
    }
  }
};

// The terms of dgamma and dbeta: sum of dy xhat, sum of dy.
template <typename Element, int width>
struct LayerNormalizationTerms {
  static constexpr int kSums = 2;
  static constexpr int kWidth = width;
  static constexpr int kAtOnce = 4;

  const Element* x;
  const Element* dy;
  const float* row_mean;
  const float* row_factor;

  struct Column {};
  struct Values {
    RawPack<Element, width> x, dy;
    float mean, factor;
  };
  SHOAL_HOST_DEVICE Column OfColumn(int32_t) const { return {}; }
  SHOAL_HOST_DEVICE Values Read(const Column&, int64_t row, int64_t at) const {
    return {LoadRaw<width>(x + at), LoadRaw<width>(dy + at), row_mean[row], row_factor[row]};
  }
  SHOAL_HOST_DEVICE void Add(const Column&, const Values& values, int64_t, int64_t,
                             Pack<width> (&sums)[kSums]) const {
    const Pack<width> in = Unpack(values.x), gradients = Unpack(values.dy);
    for (int i = 0; i < width; ++i) {
      sums[0][i] += gradients[i] * (in[i] - values.mean) * values.factor;
      sums[1][i] += gradients[i];
    }
  }
};

}  // namespace shoal::cuda
