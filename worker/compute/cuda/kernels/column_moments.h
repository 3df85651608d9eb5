#pragma once

#include <cstdint>

#include "worker/compute/cuda/kernels/column_sums.h"
#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/cuda/kernels/pack.h"

// Mean and variance along the rows of [rows, columns], in one pass that is exact wherever the
// values lie. Sums of differences from some row keep the digits of the variance as long as few are
// summed: what such a row lies away from the others, it adds to the variance itself, so that the
// error is at most about the number of the rows times the rounding. A thread therefore takes the
// differences from its own first row; what threads and slices have found is merged by the means'
// distances (Chan, Golub, LeVeque 1979). Bound by bandwidth.

namespace shoal::cuda {

// Of each slice (ColumnSlices), a column: the mean, less the slice's first row, and the sum of the
// squared distances from it.
template <typename Element, int width>
struct ColumnMomentsKernel {
  static constexpr int kThreads = 256;
  static constexpr int kPhases = 2;
  struct Shared {
    Pack<width> means[kThreads];
    Pack<width> squares[kThreads];
  };
  struct Own {};

  const Element* x;
  ColumnSlices slices;
  int64_t columns;
  float* partial;  // [slices.count, 2, columns]

  int64_t blocks() const { return slices.tiles * slices.count; }

  template <int phase>
  SHOAL_HOST_DEVICE void Run(const Place& place, Shared& shared, Own&) const {
    const int lane = place.thread % slices.lanes, share = place.thread / slices.lanes;
    const int shares = kThreads / slices.lanes;
    const int64_t slice = place.block / slices.tiles;
    const int64_t column = (place.block % slices.tiles * slices.lanes + lane) * width;
    if (column >= columns) return;
    const int64_t begin = slice * slices.slice_rows, rows = slices.RowsOf(slice);
    // Of these, a thread takes so many, the first few one more.
    const int64_t each = rows / shares, more = rows % shares;
    if constexpr (phase == 0) {
      Pack<width> mean = {}, squares = {};
      if (share < rows) {
        const Pack<width> first = RowAt(begin + share, column);
        for (int64_t row = share + shares; row < rows; row += shares) {
          const Pack<width> values = RowAt(begin + row, column);
          for (int i = 0; i < width; ++i) {
            const float difference = values[i] - first[i];
            mean[i] += difference;
            squares[i] += difference * difference;
          }
        }
        const float count = static_cast<float>(each + (share < more));
        const Pack<width> origin = RowAt(begin, column);
        for (int i = 0; i < width; ++i) {
          const float sum = mean[i];
          squares[i] -= sum * (sum / count);
          if (squares[i] < 0) squares[i] = 0;
          mean[i] = (first[i] - origin[i]) + sum / count;
        }
      }
      shared.means[place.thread] = mean;
      shared.squares[place.thread] = squares;
    } else if (share == 0) {
      Pack<width> mean = {}, squares = {};
      for (int s = 0; s < shares; ++s) {
        const float count = static_cast<float>(each + (s < more));
        for (int i = 0; i < width; ++i) mean[i] += count * shared.means[s * slices.lanes + lane][i];
      }
      for (int i = 0; i < width; ++i) mean[i] /= static_cast<float>(rows);
      for (int s = 0; s < shares; ++s) {
        const float count = static_cast<float>(each + (s < more));
        for (int i = 0; i < width; ++i) {
          const float distance = shared.means[s * slices.lanes + lane][i] - mean[i];
          squares[i] += shared.squares[s * slices.lanes + lane][i] + count * distance * distance;
        }
      }
      Store(mean, partial + 2 * slice * columns + column);
      Store(squares, partial + (2 * slice + 1) * columns + column);
    }
  }

 private:
  SHOAL_HOST_DEVICE Pack<width> RowAt(int64_t row, int64_t column) const {
    return Load<width>(x + row * columns + column);
  }
};

}  // namespace shoal::cuda
