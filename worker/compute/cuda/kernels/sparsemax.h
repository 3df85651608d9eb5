#pragma once

#include "worker/compute/cuda/kernels/kernel.h"

// SparsemaxOp along rows, as defined there, and its gradient. Each element finds its rank in its
// row, then one thread per row follows the ranks to the threshold. A row of a few thousand elements
// is read from the cache once per element. There are only few rows, because their elements are
// classes. In double where the op is discontinuous, because rounding there must not matter.

namespace shoal::cuda {

// Ranks in descending order, not-a-number first, equal elements in their given order.
struct SparsemaxRanksKernel {
  const float* x;
  int64_t rows;
  int32_t columns;
  int32_t* ranks;   // by element
  int32_t* places;  // by rank

  int64_t items() const { return rows * columns; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const int32_t column = item % columns, first = item - column;
    const float own = x[item];
    int32_t rank = 0;
    for (int32_t i = 0; i < columns; ++i) {
      const float other = x[first + i];
      const bool before = own != own ? false : other != other || other > own;
      const bool equal = own == other || (own != own && other != other);
      rank += before || (equal && i < column);
    }
    ranks[item] = rank;
    places[first + rank] = column;
  }
};

// The number to subtract from a row's elements, and the number of elements above it.
struct SparsemaxThreshold {
  double tau;
  int32_t above;
};

struct SparsemaxThresholdsKernel {
  const float* x;
  const int32_t* places;
  int64_t rows;
  int32_t columns;
  SparsemaxThreshold* thresholds;

  int64_t items() const { return rows; }
  SHOAL_HOST_DEVICE void operator()(int32_t row) const {
    const float* const of_row = x + int64_t{row} * columns;
    const int32_t* const sorted = places + int64_t{row} * columns;
    double cumulative = 0, sum = 0;
    int32_t k = 0;
    for (; k < columns; ++k) {
      const double element = of_row[sorted[k]];
      cumulative += element;
      if (k > 0 && !(1 + static_cast<double>(k + 1) * element > cumulative)) break;
      sum += cumulative;
    }
    thresholds[row] = {.tau = (sum - 1) / k, .above = k};
  }
};

struct SparsemaxKernel {
  const float* x;
  const SparsemaxThreshold* thresholds;
  int64_t rows;
  int32_t columns;
  float* y;

  int64_t items() const { return rows * columns; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const double tau = thresholds[item / columns].tau;
    y[item] = x[item] < tau ? 0 : static_cast<float>(x[item] - tau);
  }
};

// One thread per row.
struct SparsemaxBackwardKernel {
  const float* x;
  const float* dy;
  const int32_t* ranks;
  const SparsemaxThreshold* thresholds;
  int64_t rows;
  int32_t columns;
  float* dx;

  int64_t items() const { return rows; }
  SHOAL_HOST_DEVICE void operator()(int32_t row) const {
    const auto [tau, above] = thresholds[row];
    const int64_t first = int64_t{row} * columns, end = first + columns;
    double of_tau = 0;
    for (int64_t i = first; i < end; ++i) {
      // A product, so that not-a-number in dy stays: of a row with one, no comparison is true.
      dx[i] = (x[i] > tau ? 1.0f : x[i] == tau ? 0.5f : 0.0f) * dy[i];
      of_tau -= dx[i];
    }
    for (int64_t i = first; i < end; ++i) {
      if (ranks[i] < above) dx[i] += static_cast<float>(of_tau * (above - ranks[i]) / above);
    }
  }
};

}  // namespace shoal::cuda
