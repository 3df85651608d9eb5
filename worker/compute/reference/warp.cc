#include "common/model/ops/warp.h"

#include "worker/compute/op_math/warp_sources.h"
#include "worker/compute/reference/kernels.h"

namespace shoal::reference {
namespace {

// Calls visit(x index, y index, weight) for every source of every element of y. An x index of -1 is
// the constant outside.
template <typename Visit>
void ForEachSource(const WarpAttributes& attributes, const View<const double>& numbers,
                   const Shape& x, const Shape& y, Visit visit) {
  for (int64_t i = 0; i < ElementCount(y); ++i) {
    const int64_t c = i % y[3], w = i / y[3] % y[2], h = i / (y[3] * y[2]) % y[1];
    const int64_t b = i / (y[3] * y[2] * y[1]);
    const int64_t count = numbers.columns();
    const WarpMap map = WarpMapOf(attributes, numbers.data + b * count, count, x[1], x[2]);
    const WarpSource row = WarpSourceAt(attributes, map.Row(h, w), x[1]);
    const WarpSource column = WarpSourceAt(attributes, map.Column(h, w), x[2]);
    for (const int a : {0, 1}) {
      for (const int e : {0, 1}) {
        const double weight = row.weight[a] * column.weight[e];
        if (weight == 0) continue;
        const bool outside = row.index[a] < 0 || column.index[e] < 0;
        const int64_t pixel = (b * x[1] + row.index[a]) * x[2] + column.index[e];
        visit(outside ? -1 : pixel * x[3] + c, i, weight);
      }
    }
  }
}

}  // namespace

void Warp(const Arguments& a) {
  const WarpAttributes& attributes = static_cast<const WarpOp&>(a.op).attributes;
  ForEachSource(attributes, a.inputs[1], a.inputs[0].shape, a.output().shape,
                [&](int64_t x, int64_t y, double weight) {
                  const double from = x < 0 ? attributes.fill_value : a.inputs[0].data[x];
                  a.output().data[y] += weight * from;
                });
}

void WarpBackward(const Arguments& a) {
  ForEachSource(static_cast<const WarpBackwardOp&>(a.op).attributes, a.inputs[1], a.output().shape,
                a.inputs[0].shape, [&](int64_t x, int64_t y, double weight) {
                  if (x >= 0) a.output().data[x] += weight * a.inputs[0].data[y];
                });
}

}  // namespace shoal::reference
