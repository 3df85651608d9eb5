#include "common/model/ops/pool2d.h"

#include <cmath>
#include <vector>

#include "worker/compute/reference/kernels.h"

namespace shoal::reference {
namespace {

// Calls visit(y index, x indices inside the image in row-major order) for every window.
template <typename Visit>
void ForEachWindow(const Window& window, const Shape& x, const Shape& y, Visit visit) {
  const int64_t before_h = window.PaddingBefore(0, x[1]);
  const int64_t before_w = window.PaddingBefore(1, x[2]);
  std::vector<int64_t> inside;
  int64_t index = 0;
  for (int64_t b = 0; b < y[0]; ++b) {
    for (int64_t oh = 0; oh < y[1]; ++oh) {
      for (int64_t ow = 0; ow < y[2]; ++ow) {
        for (int64_t c = 0; c < y[3]; ++c) {
          inside.clear();
          for (int64_t kh = 0; kh < window.size[0]; ++kh) {
            const int64_t ih = oh * window.strides[0] + kh * window.dilation[0] - before_h;
            for (int64_t kw = 0; kw < window.size[1]; ++kw) {
              const int64_t iw = ow * window.strides[1] + kw * window.dilation[1] - before_w;
              if (ih < 0 || ih >= x[1] || iw < 0 || iw >= x[2]) continue;
              inside.push_back(((b * x[1] + ih) * x[2] + iw) * x[3] + c);
            }
          }
          visit(index++, inside);
        }
      }
    }
  }
}

// The index of the first of the largest elements. Not-a-number is the largest; of several the last
// counts, as on a GPU (cuda/kernels/pool2d.h).
int64_t ArgMax(const double* x, const std::vector<int64_t>& indices) {
  int64_t largest = indices[0];
  for (const int64_t i : indices) {
    if (x[i] > x[largest] || std::isnan(x[i])) largest = i;
  }
  return largest;
}

}  // namespace

void Pool2D(const Arguments& a) {
  const auto& op = static_cast<const Pool2DOp&>(a.op);
  const double* x = a.inputs[0].data;
  ForEachWindow(op.window, a.inputs[0].shape, a.output().shape,
                [&](int64_t y, const std::vector<int64_t>& inside) {
                  if (op.kind == Pool2DOp::Kind::kMax) {
                    a.output().data[y] = x[ArgMax(x, inside)];
                    return;
                  }
                  double sum = 0;
                  for (const int64_t i : inside) sum += x[i];
                  a.output().data[y] = sum / inside.size();
                });
}

void Pool2DBackward(const Arguments& a) {
  const auto& op = static_cast<const Pool2DBackwardOp&>(a.op);
  const double* x = a.inputs[0].data;
  const double* dy = a.inputs[2].data;
  ForEachWindow(op.window, a.inputs[0].shape, a.inputs[2].shape,
                [&](int64_t y, const std::vector<int64_t>& inside) {
                  if (op.kind == Pool2DOp::Kind::kMax) {
                    a.output().data[ArgMax(x, inside)] += dy[y];
                    return;
                  }
                  for (const int64_t i : inside) a.output().data[i] += dy[y] / inside.size();
                });
}

void GlobalAveragePool2D(const Arguments& a) {
  const View<const double>& x = a.inputs[0];
  const int64_t pixels = x.shape[1] * x.shape[2], channels = x.shape[3];
  for (int64_t b = 0; b < x.shape[0]; ++b) {
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (int64_t p = 0; p < pixels; ++p) sum += x.data[(b * pixels + p) * channels + c];
      a.output().data[b * channels + c] = sum / pixels;
    }
  }
}

void GlobalAveragePool2DBackward(const Arguments& a) {
  const View<double>& dx = a.output();
  const int64_t pixels = dx.shape[1] * dx.shape[2], channels = dx.shape[3];
  for (int64_t i = 0; i < dx.size(); ++i) {
    const int64_t b = i / (pixels * channels);
    dx.data[i] = a.inputs[0].data[b * channels + i % channels] / pixels;
  }
}

}  // namespace shoal::reference
