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

// How `rows` rows of `packs` packs are cut, so that about `blocks` blocks of kThreads have work. A
// block has a slice of the rows and a tile of `lanes` neighbouring packs, each of them by
// kThreads / lanes threads. There are as many lanes as leave no thread without work: a power of two
// would leave 44 % of them with none where there are 144 channels.
struct ColumnSlices {
  static constexpr int kThreads = 256;
  static constexpr int kBlocksAtOnce = 2;  // of a multiprocessor, with up to 128 registers a thread
  static constexpr int kMostLanes = 32;

  ColumnSlices(int64_t rows, int64_t packs, int64_t blocks)
      : rows(rows),
        packs(static_cast<int32_t>(packs)),
        tiles(static_cast<int32_t>((packs + kMostLanes - 1) / kMostLanes)),
        lanes(static_cast<int32_t>((packs + tiles - 1) / tiles)) {
    const int64_t wanted = std::clamp<int64_t>(blocks / tiles, 1, std::max<int64_t>(1, rows));
    slice_rows = (rows + wanted - 1) / wanted;
    count = slice_rows == 0 ? 0 : (rows + slice_rows - 1) / slice_rows;
  }

  // For what computes each element on its own: about kRowsOfThread rows a thread, which are enough
  // to share what it reads for all, and few enough that the last blocks do not end late.
  static constexpr int kRowsOfThread = 8;
  static ColumnSlices OfElements(int64_t rows, int64_t packs) {
    return ColumnSlices(rows, packs, rows * packs / (kThreads * kRowsOfThread));
  }

  int64_t blocks() const { return tiles * count; }

  // The last may have fewer.
  SHOAL_HOST_DEVICE int64_t RowsOf(int64_t slice) const {
    const int64_t left = rows - slice * slice_rows;
    return left < slice_rows ? left : slice_rows;
  }

  int64_t rows;
  int32_t packs;
  int32_t tiles;
  int32_t lanes;
  int64_t slice_rows = 0;
  int64_t count = 0;
};

// What of it a thread has: every shares-th row of a slice, from the share-th on, of one pack.
struct ColumnShare {
  SHOAL_HOST_DEVICE ColumnShare(const ColumnSlices& slices, const Place& place)
      : lane(place.thread % slices.lanes),
        share(place.thread / slices.lanes),
        shares(ColumnSlices::kThreads / slices.lanes),
        slice(static_cast<int32_t>(place.block) / slices.tiles),
        pack(static_cast<int32_t>(place.block) % slices.tiles * slices.lanes + lane),
        exists(share < shares && pack < slices.packs),
        first_row(slice * slices.slice_rows),
        rows(static_cast<int32_t>(slices.RowsOf(slice))) {}

  // Calls use(i, read(i)) for each i of its rows first_row + i in turn but the first `skipped`, and
  // reads `at_once` of them before it uses the first, so that as many are on their way from memory.
  template <int at_once, typename Read, typename Use>
  SHOAL_HOST_DEVICE void ForRows(int skipped, const Read& read, const Use& use) const {
    int32_t row = share + skipped * shares;
    decltype(read(row)) values[at_once];
    for (; row + (at_once - 1) * shares < rows; row += at_once * shares) {
      SHOAL_UNROLL
      for (int i = 0; i < at_once; ++i) values[i] = read(row + i * shares);
      SHOAL_UNROLL
      for (int i = 0; i < at_once; ++i) use(row + i * shares, values[i]);
    }
    if (row >= rows) return;
    // Where there is no such row, one that there is: reading is not to wait for a branch.
    SHOAL_UNROLL
    for (int i = 0; i < at_once; ++i) {
      values[i] = read(row + i * shares < rows ? row + i * shares : row);
    }
    SHOAL_UNROLL
    for (int i = 0; i < at_once; ++i) {
      if (row + i * shares < rows) use(row + i * shares, values[i]);
    }
  }

  int lane, share, shares;
  int32_t slice, pack;
  bool exists;        // else the thread has nothing
  int64_t first_row;  // of the slice
  int32_t rows;       // likewise
};

// `Terms` has kSums, kWidth, kAtOnce, and of a pack of columns, from `column` on,
//   OfColumn(column)                       what it has for all rows, read once,
//   Read(of_column, row, at)               what is read of a row, of kAtOnce rows at once,
//   Add(of_column, values, row, at, sums)  which adds what the row has for them to the sums,
// where `at` is the pack's place in [rows, columns].
template <typename Terms>
struct ColumnSumsKernel {
  static constexpr int kThreads = ColumnSlices::kThreads;
  static constexpr int kBlocksAtOnce = ColumnSlices::kBlocksAtOnce;
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

  int64_t blocks() const { return slices.blocks(); }

  template <int phase>
  SHOAL_HOST_DEVICE void Run(const Place& place, Shared& shared, Own&) const {
    const ColumnShare share(slices, place);
    if (!share.exists) return;
    const int32_t column = share.pack * kWidth;
    if constexpr (phase == 0) {
      const auto of_column = terms.OfColumn(column);
      Pack<kWidth> sums[kSums] = {};
      const int64_t first = share.first_row * columns + column;
      const int32_t step = static_cast<int32_t>(columns);
      share.ForRows<Terms::kAtOnce>(
          0,
          [&](int32_t row) {
            return terms.Read(of_column, share.first_row + row, first + int64_t{row} * step);
          },
          [&](int32_t row, const auto& values) {
            terms.Add(of_column, values, share.first_row + row, first + int64_t{row} * step, sums);
          });
      for (int s = 0; s < kSums; ++s) shared.shares[s][place.thread] = sums[s];
    } else {
      // The threads of a lane have a sum each, in turn.
      for (int s = share.share; s < kSums; s += share.shares) {
        Pack<kWidth> sum = {};
        for (int i = 0; i < share.shares; ++i) {
          const Pack<kWidth>& of_share = shared.shares[s][i * slices.lanes + share.lane];
          for (int w = 0; w < kWidth; ++w) sum[w] += of_share[w];
        }
        Store(sum, partial + (int64_t{share.slice} * kSums + s) * columns + column);
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
