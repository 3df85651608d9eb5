#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "common/model/ops/depthwise_conv2d.h"
#include "common/model/ops/pool2d.h"
#include "tests/worker/compute/cuda/kernels/kernel_test.h"
#include "worker/compute/cuda/kernels/depthwise_conv2d.h"
#include "worker/compute/cuda/kernels/fast_divisor.h"
#include "worker/compute/cuda/kernels/pool2d.h"

namespace shoal::cuda {
namespace {

class WindowKernelsTest : public KernelTest {
 protected:
  Shape PickImages() {
    return {Pick(1, 3), Pick(1, 12), Pick(1, 12), Flip() ? Pick(1, 20) : 8 * Pick(1, 9)};
  }

  // One that fits into `images`, perhaps with zeros around them. A convolution's may be dilated.
  Window PickWindow(const Shape& images, bool convolution) {
    Window window;
    // For the kernels of such windows.
    const bool three_wide = convolution && images[2] > 3 && Flip();
    do {
      const bool dilated = convolution && Flip();
      window.padding = Flip() ? Padding::kSame : Padding::kValid;
      for (int axis = 0; axis < 2; ++axis) {
        window.size[axis] = Pick(1, 4);
        window.strides[axis] = dilated ? 1 : Pick(1, 4);
        window.dilation[axis] = dilated ? Pick(1, 3) : 1;
        if (three_wide && axis == 1) window.size[1] = 3, window.dilation[1] = 1;
        if (three_wide && axis == 1 && !dilated) window.strides[1] = Pick(1, 2);
        window.zeros_before[axis] = window.zeros_after[axis] = 0;
        if (window.padding == Padding::kSame) continue;
        const int64_t most = (window.size[axis] - 1) * window.dilation[axis];
        window.zeros_before[axis] = Pick(0, most);
        window.zeros_after[axis] = Pick(0, most);
      }
    } while (!window.OutputShape(images).ok());
    return window;
  }
};
SHOAL_KERNEL_TEST_SUITE(WindowKernelsTest);

TEST(FastDivisorTest, DividesAsDivisionDoes) {
  constexpr int32_t kMax = INT32_MAX;
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  std::mt19937_64 random(seed);
  std::vector<int32_t> numbers = {1, 2, 3, 5, 6, 7, 9, 112, 641, 65535, 65537, kMax - 1, kMax};
  for (int bits = 2; bits < 31; ++bits) {
    for (const int32_t more : {-1, 0, 1}) numbers.push_back((1 << bits) + more);
    numbers.push_back(std::uniform_int_distribution<int32_t>(1, 1 << bits)(random));
  }
  for (const int32_t divisor : numbers) {
    const FastDivisor by(divisor);
    std::vector<int32_t> dividends = numbers;
    // Where the quotient changes.
    for (const int64_t quotient : {int64_t{1}, int64_t{2}, int64_t{kMax} / divisor}) {
      for (const int64_t more : {-1, 0, 1}) {
        const int64_t dividend = quotient * divisor + more;
        if (dividend >= 0 && dividend <= kMax) dividends.push_back(static_cast<int32_t>(dividend));
      }
    }
    for (const int32_t dividend : dividends) {
      ASSERT_EQ(dividend / by, dividend / divisor) << dividend << " / " << divisor;
      ASSERT_EQ(dividend % by, dividend % divisor) << dividend << " % " << divisor;
    }
  }
}

TEST_P(WindowKernelsTest, DepthwiseConvolutionEqualsTheReference) {
  ForElements(15, [&]<typename Element>(Element) {
    const Shape images = PickImages();
    const int64_t multiplier = Flip() ? 1 : Pick(2, 3), filters = images[3] * multiplier;
    DepthwiseConv2DOp op;
    op.window = PickWindow(images, /*convolution=*/true);
    const Shape kernel_shape = {op.window.size[0], op.window.size[1], images[3], multiplier};
    Shape y_shape = op.window.OutputShape(images).value();
    y_shape[3] = filters;
    SCOPED_TRACE(testing::Message()
                 << ShapeToString(images) << " by " << ShapeToString(kernel_shape) << " to "
                 << ShapeToString(y_shape));
    const auto x = Normal<Element>(ElementCount(images));
    const auto kernel = Normal<float>(ElementCount(kernel_shape));
    const auto bias = Normal<float>(filters);
    const bool with_bias = Flip();
    const auto y = Empty<Element>(ElementCount(y_shape));
    const auto dy = Normal<Element>(y.size());
    const auto dx = Empty<Element>(x.size());
    const auto dkernel = Empty<float>(kernel.size());
    const auto lines_y = Empty<Element>(y.size()), lines_dx = Empty<Element>(x.size());
    bool by_lines = false;
    const SlidingWindow window(op.window, images);
    const int32_t channels = static_cast<int32_t>(images[3]), m = static_cast<int32_t>(multiplier);
    const auto run = [&](auto width) {
      Run(DepthwiseConv2DKernel<Element, width>{window, images[0], channels, m, x.data(),
                                                kernel.data(), with_bias ? bias.data() : nullptr,
                                                y.data()});
      WithLines(window, m, [&]<int stride>(std::integral_constant<int, stride>) {
        if constexpr (stride > 0) {
          Run(DepthwiseLinesKernel<Element, width, stride>{
              window, images[0], channels, false, x.data(), kernel.data(),
              with_bias ? bias.data() : nullptr, lines_y.data()});
          by_lines = true;
        }
      });
      Run(DepthwiseConv2DBackwardDataKernel<Element, width>{window, images[0], channels, m,
                                                            dy.data(), kernel.data(), dx.data()});
      if (LinesSupportInputGradient(window, m)) {
        Run(DepthwiseLinesKernel<Element, width, 1>{window.Transposed(), images[0], channels, true,
                                                    dy.data(), kernel.data(), nullptr,
                                                    lines_dx.data()});
      }
      constexpr int kSumWidth = std::min<int>(width, kWidestWeightPack);
      using Terms = DepthwiseConv2DWeightTerms<Element, kSumWidth>;
      const int64_t rows = y.size() / filters;
      const ColumnSlices slices(rows, filters / kSumWidth, Pick(1, 80));
      const auto partial = Empty<float>(slices.count * Terms::kTaps * filters);
      const int32_t taps = window.h.size * window.w.size;
      for (int32_t tap = 0; tap < taps; tap += Terms::kTaps) {
        Run(ColumnSumsKernel<Terms>{
            {window, channels, m, x.data(), dy.data(), tap}, slices, filters, partial.data()});
        SumOfSlicesKernel<Terms::kTaps> sum = {partial.data(), slices.count, filters, {}};
        for (int32_t s = 0; s < Terms::kTaps && tap + s < taps; ++s) {
          sum.to[s] = dkernel.data() + (tap + s) * filters;
        }
        Run(sum);
      }
    };
    if (multiplier == 1) {
      WithWidth<Element>(channels, run);
    } else {
      run(std::integral_constant<int, 1>());
    }
    std::vector<Operand> inputs = {{x.doubles(), images}, {kernel.doubles(), kernel_shape}};
    if (with_bias) inputs.push_back({bias.doubles(), {filters}});
    const Doubles y_expected = Reference(op, inputs)[0];
    ExpectNear(y, y_expected, 2e-6, "y");
    if (by_lines) ExpectNear(lines_y, y_expected, 2e-6, "y by lines");
    DepthwiseConv2DBackwardDataOp data;
    data.window = op.window;
    data.x_shape = images;
    const Doubles dx_expected =
        Reference(data, {{dy.doubles(), y_shape}, {kernel.doubles(), kernel_shape}})[0];
    ExpectNear(dx, dx_expected, 2e-6, "dx");
    if (LinesSupportInputGradient(window, m))
      ExpectNear(lines_dx, dx_expected, 2e-6, "dx by lines");
    DepthwiseConv2DBackwardWeightsOp weights;
    weights.window = op.window;
    weights.kernel_shape = kernel_shape;
    ExpectNear(dkernel, Reference(weights, {{x.doubles(), images}, {dy.doubles(), y_shape}})[0],
               1e-5, "dkernel");
  });
}

TEST_P(WindowKernelsTest, PoolingEqualsTheReference) {
  ForElements(20, [&]<typename Element>(Element) {
    const Shape images = PickImages();
    Pool2DOp op;
    op.kind = Flip() ? Pool2DOp::Kind::kMax : Pool2DOp::Kind::kAverage;
    op.window = PickWindow(images, /*convolution=*/false);
    const Shape y_shape = op.window.OutputShape(images).value();
    SCOPED_TRACE(testing::Message() << ShapeToString(images) << " to " << ShapeToString(y_shape));
    const auto x = Normal<Element>(ElementCount(images));
    if (Flip()) {
      // Many are equal, of which the first counts.
      for (int64_t i = 0; i < x.size(); ++i) x[i] = FromFloat<Element>(std::round(ToFloat(x[i])));
    }
    const auto y = Empty<Element>(ElementCount(y_shape));
    const auto dy = Normal<Element>(y.size());
    const auto dx = Empty<Element>(x.size());
    const SlidingWindow window(op.window, images);
    const int32_t channels = static_cast<int32_t>(images[3]);
    const auto pool_max = [&]<typename Tap, int width>(Tap, std::integral_constant<int, width>) {
      const auto taps = Empty<Tap>(y.size());
      const FastDivisor by_packs(channels / width);
      Run(MaxPool2DKernel<Element, Tap, width>{window, images[0], channels, by_packs, x.data(),
                                               y.data(), taps.data()});
      Run(MaxPool2DBackwardKernel<Element, Tap, width>{window, images[0], channels, by_packs,
                                                       taps.data(), dy.data(), dx.data()});
    };
    WithWidth<Element>(channels, [&]<int width>(std::integral_constant<int, width> constant) {
      if (op.kind == Pool2DOp::Kind::kMax) {
        if (Flip()) return pool_max(uint32_t{}, constant);
        return WithTap(window, [&](auto tap) { pool_max(tap, constant); });
      }
      const FastDivisor by_packs(channels / width);
      Run(AveragePool2DKernel<Element, width>{window, images[0], channels, by_packs, x.data(),
                                              y.data()});
      Run(AveragePool2DBackwardKernel<Element, width>{window, images[0], channels, by_packs,
                                                      dy.data(), dx.data()});
    });
    ExpectNear(y, Reference(op, {{x.doubles(), images}})[0], 1e-6, "y");
    Pool2DBackwardOp backward;
    backward.kind = op.kind;
    backward.window = op.window;
    ExpectNear(
        dx,
        Reference(backward,
                  {{x.doubles(), images}, {y.doubles(), y_shape}, {dy.doubles(), y_shape}})[0],
        1e-6, "dx");
  });
}

// A maximum that is infinite, or not-a-number, gets its gradient as others do.
TEST_P(WindowKernelsTest, EveryMaximumGetsItsGradient) {
  const Shape images = {1, 4, 4, 1};
  const SlidingWindow window({.size = {3, 3}, .strides = {2, 2}, .zeros_before = {1, 1}}, images);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto x = Empty<float>(16), y = Empty<float>(4), dx = Empty<float>(16);
  const auto taps = Empty<uint8_t>(4);
  const auto dy = Normal<float>(4);
  const auto dx_where = [&](int64_t place, float value) {
    for (int64_t i = 0; i < 16; ++i) x[i] = -kInfinity;
    x[place] = value;
    const FastDivisor by_packs(1);
    Run(MaxPool2DKernel<float, uint8_t, 1>{window, 1, 1, by_packs, x.data(), y.data(),
                                           taps.data()});
    Run(MaxPool2DBackwardKernel<float, uint8_t, 1>{window, 1, 1, by_packs, taps.data(), dy.data(),
                                                   dx.data()});
    return dx.doubles();
  };
  // The windows begin at the pixels 0, 1, 4 and 5, and all have pixel 5.
  const double all = double{dy[0]} + dy[1] + dy[2] + dy[3];
  for (const float value : {kInfinity, std::nanf("")}) {
    EXPECT_NEAR(dx_where(5, value)[5], all, 1e-6);
    EXPECT_TRUE(std::isinf(value) ? std::isinf(y[0]) : std::isnan(y[0]));
  }
  const Doubles dx_of_none = dx_where(5, -kInfinity);
  EXPECT_EQ(dx_of_none[0], dy[0]);
  EXPECT_EQ(dx_of_none[1], dy[1]);
  EXPECT_EQ(dx_of_none[4], dy[2]);
  EXPECT_EQ(dx_of_none[5], dy[3]);
}

TEST_P(WindowKernelsTest, GlobalAverageEqualsTheReference) {
  ForElements(5, [&]<typename Element>(Element) {
    const Shape images = PickImages(), y_shape = {images[0], images[3]};
    const int32_t pixels = static_cast<int32_t>(images[1] * images[2]);
    const int32_t channels = static_cast<int32_t>(images[3]);
    const auto x = Normal<Element>(ElementCount(images)), dx = Empty<Element>(x.size());
    const auto y = Empty<Element>(ElementCount(y_shape)), dy = Normal<Element>(y.size());
    WithWidth<Element>(channels, [&](auto width) {
      Run(GlobalAveragePool2DKernel<Element, width>{images[0], pixels, channels, x.data(),
                                                    y.data()});
      Run(GlobalAveragePool2DBackwardKernel<Element, width>{images[0], pixels, channels, dy.data(),
                                                            dx.data()});
    });
    ExpectNear(y, Reference(GlobalAveragePool2DOp(), {{x.doubles(), images}})[0], 2e-6, "y");
    GlobalAveragePool2DBackwardOp backward;
    backward.x_shape = images;
    ExpectNear(dx, Reference(backward, {{dy.doubles(), y_shape}})[0], 2e-6, "dx");
  });
}

}  // namespace
}  // namespace shoal::cuda
