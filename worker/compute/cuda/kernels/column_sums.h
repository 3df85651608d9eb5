#pragma once

#include <algorithm>
#include <cstdint>

#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/cuda/kernels/pack.h"

// Sums along the rows of [rows, columns], one per column: for statistics, and for gradients of
// values that a channel shares. The rows are cut into slices, so that the whole device has work.
// ColumnSumsKernel stores the sums of each slice; a later kernel adds these up, in their order.
// Bound by bandwidth.

namespace shoal::cuda {

// How to cut `rows` rows of `packs` packs so that about `blocks` blocks of kThreads have work. A
// block gets a slice of the rows and a tile of `lanes` neighbouring packs; kThreads / lanes threads
// work on each pack. The number of lanes leaves no thread idle: a power of two would leave 44 % of
// them idle for 144 channels.
struct ColumnSlices {
  static constexpr int kThreads = 256;
  static constexpr int kBlocksAtOnce = 2;  // per multiprocessor; up to 128 registers per thread
  static constexpr int kMaxLanes = 32;

  ColumnSlices(int64_t rows, int64_t packs, int64_t blocks)
      : rows(rows),
        packs(static_cast<int32_t>(packs)),
        tiles(static_cast<int32_t>((packs + kMaxLanes - 1) / kMaxLanes)),
        lanes(static_cast<int32_t>((packs + tiles - 1) / tiles)) {
    const int64_t wanted = std::clamp<int64_t>(blocks / tiles, 1, std::max<int64_t>(1, rows));
    slice_rows = (rows + wanted - 1) / wanted;
    count = slice_rows == 0 ? 0 : (rows + slice_rows - 1) / slice_rows;
  }

  // For kernels that compute each element on its own: about kRowsOfThread rows per thread. That is
  // enough to share the values read for all rows, and not enough to let the last blocks end late.
  static constexpr int kRowsOfThread = 8;
  static ColumnSlices OfElements(int64_t rows, int64_t packs) {
    return ColumnSlices(rows, packs, rows * packs / (kThreads * kRowsOfThread));
  }

  int64_t blocks() const { return tiles * count; }

  // The last slice may have fewer rows.
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

// A thread's share: every shares-th row of a slice, from the share-th on, of one pack.
struct ColumnShare {
  SHOAL_HOST_DEVICE ColumnShare(const ColumnSlices& slices, const ThreadPosition& place)
      : lane(place.thread % slices.lanes),
        share(place.thread / slices.lanes),
        shares(ColumnSlices::kThreads / slices.lanes),
        slice(static_cast<int32_t>(place.block) / slices.tiles),
        pack(static_cast<int32_t>(place.block) % slices.tiles * slices.lanes + lane),
        exists(share < shares && pack < slices.packs),
        first_row(slice * slices.slice_rows),
        rows(static_cast<int32_t>(slices.RowsOf(slice))) {}

  // Calls use(i, read(i)) for each i of its rows first_row + i in turn, except the first `skipped`.
  // It reads `at_once` rows before it uses the first, so that this many reads are in flight.
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
    // A missing row is replaced by an existing one, so that no read waits for a branch.
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
  bool exists;        // otherwise the thread has no work
  int64_t first_row;  // of the slice
  int32_t rows;       // of the slice
};

// `Terms` has kSums, kWidth, kAtOnce, and for a pack of columns, from `column` on:
//  OfColumn(column)                       returns the values for all rows, read once,
//  Read(of_column, row, at)               reads the values of a row, kAtOnce rows at once,
//  Add(of_column, values, row, at, sums)  adds the row's contribution to the sums,
// where `at` is the pack's offset in [rows, columns].
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
  struct ThreadState {};

  Terms terms;
  ColumnSlices slices;
  int64_t columns;
  float* partial;  // [slices.count, kSums, columns]

  int64_t blocks() const { return slices.blocks(); }

  template <int phase>
  SHOAL_HOST_DEVICE void Run(const ThreadPosition& place, Shared& shared, ThreadState&) const {
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
      // Each thread of a lane computes some of the sums.
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

// Adds up the sums of slices. A block has kColumns columns. Each of its threads adds up a share of
// one column's slices, and then the shares are added up in order from shared memory. There are
// hundreds of slices, and one thread for all of them would wait hundreds of times for memory.
struct SliceShares {
  static constexpr int kColumns = 8;  // 32 bytes of float, the smallest unit of a memory read
  static constexpr int kShares = 32;
  static constexpr int kThreads = kColumns * kShares;

  static int64_t Blocks(int64_t columns) { return (columns + kColumns - 1) / kColumns; }

  SHOAL_HOST_DEVICE explicit SliceShares(const ThreadPosition& place)
      : thread(place.thread), column(place.block * kColumns + place.thread % kColumns) {}

  // The first of the thread's slices; the thread has every kShares-th.
  SHOAL_HOST_DEVICE int first() const { return thread / kColumns; }
  // The sum over the thread's slices.
  SHOAL_HOST_DEVICE double SumOf(const float* partial, int64_t slices, int sums, int sum,
                                 int64_t columns) const {
    double total = 0;
    for (int64_t slice = first(); slice < slices; slice += kShares) {
      total += partial[(slice * sums + sum) * columns + column];
    }
    return total;
  }
  // The sum over all slices of its column.
  SHOAL_HOST_DEVICE double Total(const double (&shares)[kThreads]) const {
    double total = 0;
    for (int i = 0; i < kShares; ++i) total += shares[i * kColumns + thread % kColumns];
    return total;
  }

  int thread;
  int64_t column;
};

// to[s][column] = the sum over all slices. Skips a null `to`.
template <int sums>
struct SumOfSlicesKernel {
  static constexpr int kThreads = SliceShares::kThreads;
  static constexpr int kPhases = 2;
  struct Shared {
    double shares[sums][kThreads];
  };
  struct ThreadState {};

  const float* partial;
  int64_t slices;
  int64_t columns;
  float* to[sums];

  int64_t blocks() const { return SliceShares::Blocks(columns); }

  template <int phase>
  SHOAL_HOST_DEVICE void Run(const ThreadPosition& place, Shared& shared, ThreadState&) const {
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
