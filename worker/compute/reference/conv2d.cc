#include "common/model/ops/conv2d.h"

#include <array>

#include "worker/compute/reference/kernels.h"

namespace shoal::reference {
namespace {

// Extents of a convolution of x [B, H, W, C] with a kernel [kh, kw, C / groups, F] to y.
struct Geometry {
  Geometry(const Window& window, int64_t groups, const Shape& x, const Shape& y)
      : window(window),
        x(x),
        y(y),
        group_in(x[3] / groups),
        group_out(y[3] / groups),
        before{window.PaddingBefore(0, x[1]), window.PaddingBefore(1, x[2])} {}

  // Calls visit(x index, kernel index, y index) for every product in the convolution's sums.
  template <typename Visit>
  void ForEachProduct(Visit visit) const {
    for (int64_t b = 0; b < y[0]; ++b) {
      for (int64_t oh = 0; oh < y[1]; ++oh) {
        for (int64_t ow = 0; ow < y[2]; ++ow) VisitWindow(b, oh, ow, visit);
      }
    }
  }

  const Window& window;
  const Shape x;
  const Shape y;
  const int64_t group_in, group_out;  // channels
  const std::array<int64_t, 2> before;

 private:
  template <typename Visit>
  void VisitWindow(int64_t b, int64_t oh, int64_t ow, Visit& visit) const {
    for (int64_t kh = 0; kh < window.size[0]; ++kh) {
      const int64_t ih = oh * window.strides[0] + kh * window.dilation[0] - before[0];
      if (ih < 0 || ih >= x[1]) continue;
      for (int64_t kw = 0; kw < window.size[1]; ++kw) {
        const int64_t iw = ow * window.strides[1] + kw * window.dilation[1] - before[1];
        if (iw < 0 || iw >= x[2]) continue;
        const int64_t x_pixel = ((b * x[1] + ih) * x[2] + iw) * x[3];
        const int64_t y_pixel = ((b * y[1] + oh) * y[2] + ow) * y[3];
        for (int64_t f = 0; f < y[3]; ++f) {
          for (int64_t c = 0; c < group_in; ++c) {
            visit(x_pixel + f / group_out * group_in + c,
                  ((kh * window.size[1] + kw) * group_in + c) * y[3] + f, y_pixel + f);
          }
        }
      }
    }
  }
};

}  // namespace

void Conv2D(const Arguments& a) {
  const auto& op = static_cast<const Conv2DOp&>(a.op);
  const Geometry geometry(op.window, op.groups, a.inputs[0].shape, a.output().shape);
  if (a.inputs.size() == 3) {
    for (int64_t i = 0; i < a.output().size(); ++i) {
      a.output().data[i] = a.inputs[2].data[i % a.output().columns()];
    }
  }
  geometry.ForEachProduct([&](int64_t x, int64_t kernel, int64_t y) {
    a.output().data[y] += a.inputs[0].data[x] * a.inputs[1].data[kernel];
  });
}

void Conv2DBackwardData(const Arguments& a) {
  const auto& op = static_cast<const Conv2DBackwardDataOp&>(a.op);
  const Geometry geometry(op.window, op.groups, a.output().shape, a.inputs[0].shape);
  geometry.ForEachProduct([&](int64_t x, int64_t kernel, int64_t y) {
    a.output().data[x] += a.inputs[0].data[y] * a.inputs[1].data[kernel];
  });
}

void Conv2DBackwardWeights(const Arguments& a) {
  const auto& op = static_cast<const Conv2DBackwardWeightsOp&>(a.op);
  const Geometry geometry(op.window, op.groups, a.inputs[0].shape, a.inputs[1].shape);
  geometry.ForEachProduct([&](int64_t x, int64_t kernel, int64_t y) {
    a.output().data[kernel] += a.inputs[0].data[x] * a.inputs[1].data[y];
  });
}

}  // namespace shoal::reference
