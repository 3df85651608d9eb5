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

// Who adds up what slices left: a block has kColumns columns, each of its threads a share of the
// slices of one, and when these are in memory of the block, they are added up in their order. There
// are hundreds of slices, and a thread that reads them all waits hundreds of times for memory.
struct SliceShares {
  static constexpr int kColumns = 8;  // 32 bytes of float, the least that memory is read by
  static constexpr int kShares = 32;
  static constexpr int kThreads = kColumns * kShares;

  static int64_t Blocks(int64_t columns) { return (columns + kColumns - 1) / kColumns; }

  SHOAL_HOST_DEVICE explicit SliceShares(const Place& place)
      : thread(place.thread), column(place.block * kColumns + place.thread % kColumns) {}

  // The first of the thread's slices, which are every kShares-th.
  SHOAL_HOST_DEVICE int first() const { return thread / kColumns; }
  // Of its slices.
  SHOAL_HOST_DEVICE double SumOf(const float* partial, int64_t slices, int sums, int sum,
                                 int64_t columns) const {
    double total = 0;
    for (int64_t slice = first(); slice < slices; slice += kShares) {
      total += partial[(slice * sums + sum) * columns + column];
    }
    return total;
  }
  // Of all of its column.
  SHOAL_HOST_DEVICE double Total(const double (&shares)[kThreads]) const {
    double total = 0;
    for (int i = 0; i < kShares; ++i) total += shares[i * kColumns + thread % kColumns];
    return total;
  }

  int thread;
  int64_t column;
};

// to[s][column] = the sum over all slices. A null `to` is not wanted.
template <int sums>
struct SumOfSlicesKernel {
  static constexpr int kThreads = SliceShares::kThreads;
  static constexpr int kPhases = 2;
  struct Shared {
    double shares[sums][kThreads];
  };
  struct Own {};

  const float* partial;
  int64_t slices;
  int64_t columns;
  float* to[sums];

  int64_t blocks() const { return SliceShares::Blocks(columns); }

  template <int phase>
  SHOAL_HOST_DEVICE void Run(const Place& place, Shared& shared, Own&) const {
    const SliceShares share(place);
    if (share.column >= columns) return;
    for (int s = 0; s < sums; ++s) {
      if (to[s] == nullptr) continue;
      if constexpr (phase == 0) {
        shared.shares[s][place.thread] = share.SumOf(partial, slices, sums, s, columns);
      } else if (s % SliceShares::kShares == share.first()) {
        to[s][share.column] = static_cast<float>(share.Total(shared.shares[s]));
      }
    }
  }
};

}  // namespace shoal::cuda
