#pragma once

#include <cmath>

#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/cuda/kernels/pack.h"
#include "worker/compute/op_math/row_of_id.h"

// GatherOp, which reads rows of an embedding by their ids, and its gradient. Bound by bandwidth:
// kernels read and write whole rows, in packs.

namespace shoal::cuda {

// y[i] = table[ids[i]]; not-a-number if an id is no row.
template <typename Element, int width>
struct GatherKernel {
  const float* table;  // [rows, columns]
  const float* ids;    // [count]
  int64_t rows;
  int32_t columns;
  int64_t count;
  Element* y;  // [count, columns]

  int64_t items() const { return count * (columns / width); }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const int32_t packs = columns / width;
    const int64_t row = RowOfId(ids[item / packs], rows);
    Pack<width> pack;
    if (row < 0) {
      for (int i = 0; i < width; ++i) pack[i] = NAN;
    } else {
      pack = Load<width>(table + row * columns + item % packs * width);
    }
    Store(pack, y + int64_t{item} * width);
  }
};

// The keys for a stable sort, with the places 0, 1, 2, ... as values: the row of each id, and
// `rows` for an id that is no row, so that these come last.
struct RowKeysKernel {
  const float* ids;
  int64_t rows;
  int64_t count;
  int32_t* keys;

  int64_t items() const { return count; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const int64_t row = RowOfId(ids[item], rows);
    keys[item] = static_cast<int32_t>(row < 0 ? rows : row);
  }
};

// Sorts them: each key finds its place by comparing with all others. For thousands of ids these
// reads come from the cache; for a million a sort would need a thousandth of them.
struct RankKeysKernel {
  const int32_t* keys;
  int64_t count;
  int32_t* sorted;
  int32_t* places;

  int64_t items() const { return count; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const int32_t key = keys[item];
    int64_t rank = 0;
    for (int32_t i = 0; i < count; ++i) rank += keys[i] < key || (keys[i] == key && i < item);
    sorted[rank] = key;
    places[rank] = item;
  }
};

// dtable[row] = sum of dy at the places of the row's ids, in their order, so that the bits are the
// same every time. `keys` and `places` are sorted by row and then by place. The thread at the first
// place of a row adds up all of them. Rows without an id stay unchanged: zero them first. The time
// for a row grows with the number of its ids.
template <typename Element, int width>
struct GatherBackwardKernel {
  const int32_t* keys;    // [count]
  const int32_t* places;  // [count]
  const Element* dy;      // [count, columns]
  int64_t rows;
  int32_t columns;
  int64_t count;
  float* dtable;

  int64_t items() const { return count * (columns / width); }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const int32_t packs = columns / width;
    const int32_t first = item / packs, column = item % packs * width;
    const int32_t row = keys[first];
    if (row >= rows || (first > 0 && keys[first - 1] == row)) return;
    Pack<width> sum = {};
    for (int64_t i = first; i < count && keys[i] == row; ++i) {
      const Pack<width> gradient = Load<width>(dy + int64_t{places[i]} * columns + column);
      for (int w = 0; w < width; ++w) sum[w] += gradient[w];
    }
    Store(sum, dtable + int64_t{row} * columns + column);
  }
};

}  // namespace shoal::cuda
