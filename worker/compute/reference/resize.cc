#include "common/model/ops/resize.h"

#include "worker/compute/op_math/resize_sources.h"
#include "worker/compute/reference/kernels.h"

namespace shoal::reference {
namespace {

// Calls visit(x index, y index, weight) for every source in x [B, H, W, C] of every element of y.
// Leaves out sources of weight 0, as all backends do: 0 * infinity is not a number. TensorFlow's
// ResizeBilinear rounds the second place up, so that a pixel of weight 0 has no part in it either.
template <typename Visit>
void ForEachSource(ResizeOp::Interpolation interpolation, const Shape& x, const Shape& y,
                   Visit visit) {
  const auto rows = ResizeSources(interpolation, x[1], y[1]);
  const auto columns = ResizeSources(interpolation, x[2], y[2]);
  for (int64_t i = 0; i < ElementCount(y); ++i) {
    const int64_t c = i % y[3], w = i / y[3] % y[2], h = i / (y[3] * y[2]) % y[1];
    const int64_t b = i / (y[3] * y[2] * y[1]);
    for (const int a : {0, 1}) {
      for (const int e : {0, 1}) {
        const double weight = rows[h].weight[a] * columns[w].weight[e];
        if (weight == 0) continue;
        const int64_t pixel = (b * x[1] + rows[h].index[a]) * x[2] + columns[w].index[e];
        visit(pixel * x[3] + c, i, weight);
      }
    }
  }
}

}  // namespace

void Resize(const Arguments& a) {
  ForEachSource(static_cast<const ResizeOp&>(a.op).interpolation, a.inputs[0].shape,
                a.output().shape, [&](int64_t x, int64_t y, double weight) {
                  a.output().data[y] += weight * a.inputs[0].data[x];
                });
}

void ResizeBackward(const Arguments& a) {
  ForEachSource(static_cast<const ResizeBackwardOp&>(a.op).interpolation, a.output().shape,
                a.inputs[0].shape, [&](int64_t x, int64_t y, double weight) {
                  a.output().data[x] += weight * a.inputs[0].data[y];
                });
}

}  // namespace shoal::reference
