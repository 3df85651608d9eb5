#pragma once

#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/op_math/bfloat16.h"

namespace shoal::cuda {

// Transposes `from` [rows, columns] to `to` [columns, rows], both row-major. Keras's filter [kh,
// kw, C / groups, F] has one column per filter; cuDNN's [F, kh, kw, C / groups] is its transpose. A
// block reads and writes one tile by rows, so that both accesses are consecutive in memory. Bound
// by bandwidth.
template <typename From, typename To>
struct TransposeKernel {
  static constexpr int kTile = 32;
  static constexpr int kThreads = 256;
  static constexpr int kPhases = 2;
  struct Shared {
    // One more column, so that the threads of a warp that read a column use different banks.
    float tile[kTile][kTile + 1];
  };
  struct ThreadState {};

  int64_t rows, columns;
  const From* from;
  To* to;

  SHOAL_HOST_DEVICE static int64_t Tiles(int64_t extent) { return (extent + kTile - 1) / kTile; }
  int64_t blocks() const { return Tiles(rows) * Tiles(columns); }

  template <int phase>
  SHOAL_HOST_DEVICE void Run(const ThreadPosition& place, Shared& shared, ThreadState&) const {
    const int64_t first_row = place.block / Tiles(columns) * kTile;
    const int64_t first_column = place.block % Tiles(columns) * kTile;
    const int across = place.thread % kTile;
    for (int down = place.thread / kTile; down < kTile; down += kThreads / kTile) {
      if constexpr (phase == 0) {
        const int64_t row = first_row + down, column = first_column + across;
        if (row < rows && column < columns) {
          shared.tile[down][across] = ToFloat(from[row * columns + column]);
        }
      } else {
        const int64_t row = first_row + across, column = first_column + down;
        if (row < rows && column < columns) {
          to[column * rows + row] = FromFloat<To>(shared.tile[across][down]);
        }
      }
    }
  }
};

}  // namespace shoal::cuda
