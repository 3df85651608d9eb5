#pragma once

#include <algorithm>
#include <cstdint>

#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/cuda/kernels/pack.h"

// Sums along the rows of [rows, columns], one a column: what statistics, and gradients of what a
// channel shares, are made of. The rows are cut into slices, so that there is work for the whole
// device: ColumnSumsKernel leaves the sums of each slice, and who comes after it adds these up, in
// their order. Bound by bandwidth.

namespace shoal::cuda {

// How ColumnSumsKernel cuts `rows` rows of `packs` packs, so that about `blocks` blocks have work:
// a few times the multiprocessors of the device.
struct ColumnSlices {
  ColumnSlices(int64_t rows, int64_t packs, int64_t blocks) : rows(rows) {
    while (lanes < 32 && lanes < packs) lanes *= 2;
    tiles = (packs + lanes - 1) / lanes;
    const int64_t wanted = std::clamp<int64_t>(blocks / tiles, 1, std::max<int64_t>(1, rows));
    slice_rows = (rows + wanted - 1) / wanted;
    count = slice_rows == 0 ? 0 : (rows + slice_rows - 1) / slice_rows;
  }

  // The last may have fewer.
  SHOAL_HOST_DEVICE int64_t RowsOf(int64_t slice) const {
    const int64_t left = rows - slice * slice_rows;
    return left < slice_rows ? left : slice_rows;
  }

  int64_t rows;
  int lanes = 1;  // neighbouring packs that a block takes, each by 256 / lanes threads
  int64_t tiles = 0;
  int64_t slice_rows = 0;
  int64_t count = 0;
};

// `Terms` has kSums, kWidth, and Add(row, column, sums), which adds to the sums of a pack of
// columns what the row has for them.
template <typename Terms>
struct ColumnSumsKernel {
  static constexpr int kThreads = 256;
  static constexpr int kPhases = 2;
  static constexpr int kSums = Terms::kSums;
  static constexpr int kWidth = Terms::kWidth;
  struct Shared {
    Pack<kWidth> shares[kSums][kThreads];
  };
  struct Own {};

  Terms terms;
  ColumnSlices slices;
  int64_t columns;
  float* partial;  // [slices.count, kSums, columns]

  int64_t blocks() const { return slices.tiles * slices.count; }

  template <int phase>
  SHOAL_HOST_DEVICE void Run(const Place& place, Shared& shared, Own&) const {
    const int lane = place.thread % slices.lanes, share = place.thread / slices.lanes;
    const int shares = kThreads / slices.lanes;
    const int64_t slice = place.block / slices.tiles;
    const int64_t column = (place.block % slices.tiles * slices.lanes + lane) * kWidth;
    if (column >= columns) return;
    if constexpr (phase == 0) {
      Pack<kWidth> sums[kSums] = {};
      const int64_t first = slice * slices.slice_rows, last = first + slices.slice_rows;
      const int64_t end = last < slices.rows ? last : slices.rows;
      for (int64_t row = first + share; row < end; row += shares) terms.Add(row, column, sums);
      for (int s = 0; s < kSums; ++s) shared.shares[s][place.thread] = sums[s];
    } else {
      // The threads of a lane have a sum each, in turn.
      for (int s = share; s < kSums; s += shares) {
        Pack<kWidth> sum = {};
        for (int i = 0; i < shares; ++i) {
          for (int w = 0; w < kWidth; ++w) sum[w] += shared.shares[s][i * slices.lanes + lane][w];
        }
        Store(sum, partial + (slice * kSums + s) * columns + column);
      }
    }
  }
};

// The sum `sum` of `sums` that ColumnSumsKernel left for `column`, over all slices: few, so that
// double costs nothing.
SHOAL_HOST_DEVICE inline double SumOfSlices(const float* partial, int64_t slices, int sums, int sum,
                                            int64_t columns, int64_t column) {
  double total = 0;
  for (int64_t slice = 0; slice < slices; ++slice) {
    total += partial[(slice * sums + sum) * columns + column];
  }
  return total;
}

// to[s][column] = the sum. A null `to` is not wanted.
template <int sums>
struct SumOfSlicesKernel {
  const float* partial;
  int64_t slices;
  int64_t columns;
  float* to[sums];

  int64_t items() const { return columns; }
  SHOAL_HOST_DEVICE void operator()(int32_t column) const {
    for (int s = 0; s < sums; ++s) {
      if (to[s] == nullptr) continue;
      to[s][column] = static_cast<float>(SumOfSlices(partial, slices, sums, s, columns, column));
    }
  }
};

}  // namespace shoal::cuda
