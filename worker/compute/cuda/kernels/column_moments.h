#pragma once

#include <cstdint>

#include "worker/compute/cuda/kernels/column_sums.h"
#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/cuda/kernels/pack.h"

// Mean and variance along the rows of [rows, columns], in one pass that is exact for any range of
// values. Sums of differences from one row keep the digits of the variance if they are short. The
// distance of that row from the others adds to the variance itself. So the error is at most about
// the number of rows times the rounding. Therefore each thread subtracts its own first row. The
// results of threads and slices are then merged by the distances of their means (Chan, Golub,
// LeVeque 1979). Bound by bandwidth.

namespace shoal::cuda {

// Computes for each slice (ColumnSlices) and column: the mean minus the slice's first row, and the
// sum of the squared distances from the mean.
template <typename Element, int width>
struct ColumnMomentsKernel {
  static constexpr int kThreads = ColumnSlices::kThreads;
  static constexpr int kBlocksAtOnce = ColumnSlices::kBlocksAtOnce;
  static constexpr int kPhases = 2;
  static constexpr int kAtOnce = 8;  // rows in flight per thread
  struct Shared {
    Pack<width> means[kThreads];
    Pack<width> squares[kThreads];
  };
  struct ThreadState {};

  const Element* x;
  ColumnSlices slices;
  int64_t columns;
  float* partial;  // [slices.count, 2, columns]

  int64_t blocks() const { return slices.blocks(); }

  template <int phase>
  SHOAL_HOST_DEVICE void Run(const ThreadPosition& place, Shared& shared, ThreadState&) const {
    const ColumnShare at(slices, place);
    if (!at.exists) return;
    const int32_t column = at.pack * width, step = static_cast<int32_t>(columns);
    const Element* const from = x + at.first_row * columns + column;
    const auto row_at = [&](int32_t row) { return LoadRaw<width>(from + int64_t{row} * step); };
    // The rows per share: `each`, and one more for the first `more` shares.
    const int32_t rows = at.rows, each = rows / at.shares, more = rows % at.shares;
    const auto count_of = [&](int share) { return static_cast<float>(each + (share < more)); };
    if constexpr (phase == 0) {
      Pack<width> mean = {}, squares = {};
      if (at.share < rows) {
        const Pack<width> origin = Unpack(row_at(0));
        const Pack<width> first = Unpack(row_at(at.share));
        at.ForRows<kAtOnce>(1, row_at, [&](int32_t, const RawPack<Element, width>& raw) {
          const Pack<width> values = Unpack(raw);
          for (int i = 0; i < width; ++i) {
            const float difference = values[i] - first[i];
            mean[i] += difference;
            squares[i] += difference * difference;
          }
        });
        const float count = count_of(at.share);
        for (int i = 0; i < width; ++i) {
          const float sum = mean[i];
          squares[i] -= sum * (sum / count);
          if (squares[i] < 0) squares[i] = 0;
          mean[i] = (first[i] - origin[i]) + sum / count;
        }
      }
      shared.means[place.thread] = mean;
      shared.squares[place.thread] = squares;
    } else if (at.share == 0) {
      Pack<width> mean = {}, squares = {};
      for (int s = 0; s < at.shares; ++s) {
        const float count = count_of(s);
        for (int i = 0; i < width; ++i) {
          mean[i] += count * shared.means[s * slices.lanes + at.lane][i];
        }
      }
      for (int i = 0; i < width; ++i) mean[i] /= static_cast<float>(rows);
      for (int s = 0; s < at.shares; ++s) {
        const float count = count_of(s);
        for (int i = 0; i < width; ++i) {
          const float distance = shared.means[s * slices.lanes + at.lane][i] - mean[i];
          squares[i] += shared.squares[s * slices.lanes + at.lane][i] + count * distance * distance;
        }
      }
      const int64_t slice = at.slice;
      Store(mean, partial + 2 * slice * columns + column);
      Store(squares, partial + (2 * slice + 1) * columns + column);
    }
  }
};

}  // namespace shoal::cuda
