#include <algorithm>

#include "common/model/ops.h"
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

  // Calls visit(x index, kernel index, y index) for every product that the convolution adds up.
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

template <typename Scalar>
void Store(const std::vector<double>& sums, const View<Scalar>& output) {
  std::transform(sums.begin(), sums.end(), output.data,
                 [](double sum) { return static_cast<Scalar>(sum); });
}

template <typename Scalar>
void Conv2D(const Arguments<Scalar>& a) {
  const auto& op = static_cast<const Conv2DOp&>(a.op);
  const Geometry geometry(op.window, op.groups, a.inputs[0].shape, a.output.shape);
  std::vector<double> sums(a.output.size());
  if (a.inputs.size() == 3) {
    for (size_t i = 0; i < sums.size(); ++i) sums[i] = a.inputs[2].data[i % a.output.columns()];
  }
  geometry.ForEachProduct([&](int64_t x, int64_t kernel, int64_t y) {
    sums[y] += double{a.inputs[0].data[x]} * a.inputs[1].data[kernel];
  });
  Store(sums, a.output);
}

template <typename Scalar>
void Conv2DBackwardData(const Arguments<Scalar>& a) {
  const auto& op = static_cast<const Conv2DBackwardDataOp&>(a.op);
  const Geometry geometry(op.window, op.groups, a.output.shape, a.inputs[0].shape);
  std::vector<double> sums(a.output.size());
  geometry.ForEachProduct([&](int64_t x, int64_t kernel, int64_t y) {
    sums[x] += double{a.inputs[0].data[y]} * a.inputs[1].data[kernel];
  });
  Store(sums, a.output);
}

template <typename Scalar>
void Conv2DBackwardWeights(const Arguments<Scalar>& a) {
  const auto& op = static_cast<const Conv2DBackwardWeightsOp&>(a.op);
  const Geometry geometry(op.window, op.groups, a.inputs[0].shape, a.inputs[1].shape);
  std::vector<double> sums(a.output.size());
  geometry.ForEachProduct([&](int64_t x, int64_t kernel, int64_t y) {
    sums[kernel] += double{a.inputs[0].data[x]} * a.inputs[1].data[y];
  });
  Store(sums, a.output);
}

}  // namespace

template <typename Scalar>
void AddConv2DKernels(KernelTable<Scalar>& table) {
  table["Conv2D"] = Conv2D<Scalar>;
  table["Conv2DBackwardData"] = Conv2DBackwardData<Scalar>;
  table["Conv2DBackwardWeights"] = Conv2DBackwardWeights<Scalar>;
}
template void AddConv2DKernels(KernelTable<float>& table);
template void AddConv2DKernels(KernelTable<double>& table);

}  // namespace shoal::reference
