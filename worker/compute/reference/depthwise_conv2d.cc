#include "common/model/ops/depthwise_conv2d.h"

#include "worker/compute/reference/kernels.h"

namespace shoal::reference {
namespace {

// Calls visit(x index, kernel index, y index) for every product in the convolution's sums. The
// convolution maps x [B, H, W, C] with `kernel` [kh, kw, C, M] to y.
template <typename Visit>
void ForEachProduct(const Window& window, const Shape& x, const Shape& kernel, const Shape& y,
                    Visit visit) {
  const int64_t before_h = window.PaddingBefore(0, x[1]), before_w = window.PaddingBefore(1, x[2]);
  const int64_t channels = kernel[2], multiplier = kernel[3];
  int64_t index = 0;  // of y
  for (int64_t b = 0; b < y[0]; ++b) {
    for (int64_t oh = 0; oh < y[1]; ++oh) {
      for (int64_t ow = 0; ow < y[2]; ++ow) {
        for (int64_t f = 0; f < channels * multiplier; ++f, ++index) {
          for (int64_t k = 0; k < kernel[0] * kernel[1]; ++k) {
            const int64_t kh = k / kernel[1], kw = k % kernel[1];
            const int64_t ih = oh * window.strides[0] + kh * window.dilation[0] - before_h;
            const int64_t iw = ow * window.strides[1] + kw * window.dilation[1] - before_w;
            if (ih < 0 || ih >= x[1] || iw < 0 || iw >= x[2]) continue;
            visit(((b * x[1] + ih) * x[2] + iw) * channels + f / multiplier,
                  k * channels * multiplier + f, index);
          }
        }
      }
    }
  }
}

}  // namespace

void DepthwiseConv2D(const Arguments& a) {
  const auto& op = static_cast<const DepthwiseConv2DOp&>(a.op);
  double* y = a.output().data;
  if (a.inputs.size() == 3) {
    for (int64_t i = 0; i < a.output().size(); ++i) {
      y[i] = a.inputs[2].data[i % a.output().columns()];
    }
  }
  ForEachProduct(op.window, a.inputs[0].shape, a.inputs[1].shape, a.output().shape,
                 [&](int64_t x, int64_t kernel, int64_t to) {
                   y[to] += a.inputs[0].data[x] * a.inputs[1].data[kernel];
                 });
}

void DepthwiseConv2DBackwardData(const Arguments& a) {
  const auto& op = static_cast<const DepthwiseConv2DBackwardDataOp&>(a.op);
  ForEachProduct(op.window, a.output().shape, a.inputs[1].shape, a.inputs[0].shape,
                 [&](int64_t x, int64_t kernel, int64_t y) {
                   a.output().data[x] += a.inputs[0].data[y] * a.inputs[1].data[kernel];
                 });
}

void DepthwiseConv2DBackwardWeights(const Arguments& a) {
  const auto& op = static_cast<const DepthwiseConv2DBackwardWeightsOp&>(a.op);
  ForEachProduct(op.window, a.inputs[0].shape, a.output().shape, a.inputs[1].shape,
                 [&](int64_t x, int64_t kernel, int64_t y) {
                   a.output().data[kernel] += a.inputs[0].data[x] * a.inputs[1].data[y];
                 });
}

}  // namespace shoal::reference
