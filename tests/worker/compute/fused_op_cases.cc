#include <memory>
#include <vector>

#include "common/model/ops/conv2d.h"
#include "common/model/ops/dense.h"
#include "common/model/ops/pool2d.h"
#include "tests/worker/compute/op_case.h"
#include "tests/worker/compute/op_layers.h"

namespace shoal {
namespace layers {
namespace {

ValueId SomeImage(OpCase& c) {
  return c.Image({c.Pick(2, 4), c.Pick(3, 6), c.Pick(3, 6), Channels(c)});
}

ValueId SomeRelu(OpCase& c, ValueId x) {
  return Activation(c, x, {.max_value = c.Flip() ? 1.0 : -1.0});
}

// A layer that reads the result. The caller does not.
ValueId Behind(OpCase& c, ValueId x) { return Conv2D(c, x, Channels(c), kPixel); }

void ReluOfConv2D(OpCase& c) {
  c.SetOutput(Behind(c, SomeRelu(c, Conv2D(c, SomeImage(c), Channels(c), kSame3x3))));
}

// A bias and a ReLU without a maximum: the one form that cuDNN computes within a convolution.
void ReluOfConv2DWithBias(OpCase& c) {
  const ValueId x = SomeImage(c);
  const int64_t filters = Channels(c);
  auto op = std::make_shared<Conv2DOp>();
  op->window = kSame3x3;
  const Shape kernel = {3, 3, c.shape(x)[3], filters};
  const ValueId y = c.Add(
      std::move(op), {x, c.Kernel(kernel, ElementCount(kernel) / filters), c.Tensor({filters})});
  c.SetOutput(Behind(c, Activation(c, y, {})));
}

void ReluOfDepthwiseConv2D(OpCase& c) {
  c.SetOutput(Behind(c, SomeRelu(c, DepthwiseConv2D(c, SomeImage(c), kSame3x3))));
}

void ReluOfDense(OpCase& c) {
  const ValueId x = SomeImage(c);
  const int64_t channels = c.shape(x)[3], units = Channels(c);
  const ValueId y = c.Add(std::make_shared<DenseOp>(),
                          {x, c.Kernel({channels, units}, channels), c.Tensor({units})});
  c.SetOutput(Behind(c, SomeRelu(c, y)));
}

void ReluOfAdd(OpCase& c) {
  const ValueId x = SomeImage(c);
  c.SetOutput(Behind(c, SomeRelu(c, Add(c, {x, Conv2D(c, x, c.shape(x)[3], kPixel)}))));
}

// In inference the convolution computes the normalization and the ReLU.
template <bool relu>
void NormalizationOfConv2D(OpCase& c) {
  const ValueId y = BatchNormalization(c, Conv2D(c, SomeImage(c), Channels(c), kSame3x3));
  c.SetOutput(Behind(c, relu ? SomeRelu(c, y) : y));
}

template <bool relu>
void NormalizationOfDepthwiseConv2D(OpCase& c) {
  const ValueId y = BatchNormalization(c, DepthwiseConv2D(c, SomeImage(c), kSame3x3));
  c.SetOutput(Behind(c, relu ? SomeRelu(c, y) : y));
}

void ReluOfBatchNormalization(OpCase& c) {
  c.SetOutput(Behind(c, SomeRelu(c, BatchNormalization(c, SomeImage(c)))));
}

// A residual block, whose end goes through a ReLU or not, and two layers that read it.
ValueId ResidualBlock(OpCase& c, ValueId x, bool relu) {
  const ValueId y = BatchNormalization(c, Conv2D(c, x, c.shape(x)[3], kSame3x3));
  const ValueId sum = Add(c, c.Flip() ? std::vector<ValueId>{x, y} : std::vector<ValueId>{y, x});
  return relu ? SomeRelu(c, sum) : sum;
}

template <bool relu>
void ResidualBlocks(OpCase& c) {
  const ValueId x = Conv2D(c, SomeImage(c), Channels(c), kPixel);
  c.SetOutput(Behind(c, ResidualBlock(c, ResidualBlock(c, x, relu), relu)));
}

void MaxPool2DOfRelu(OpCase& c) {
  auto op = std::make_shared<Pool2DOp>();
  op->window = {.size = {2, 2}, .strides = {2, 2}, .padding = Padding::kSame};
  const ValueId x = SomeRelu(c, Conv2D(c, SomeImage(c), Channels(c), kPixel));
  c.SetOutput(Behind(c, c.Add(std::move(op), {x})));
}

}  // namespace
}  // namespace layers

std::vector<NamedOpCase> FusedOpCases() {
  using namespace layers;
  // Before a normalization there are gradients that are zero except for rounding.
  constexpr double kBound = 1e-3;
  return {
      {"Conv2DRelu", ReluOfConv2D, kBound, /*jumps_inside=*/true},
      {"Conv2DWithBiasRelu", ReluOfConv2DWithBias, kBound, /*jumps_inside=*/true},
      {"DepthwiseConv2DRelu", ReluOfDepthwiseConv2D, kBound, /*jumps_inside=*/true},
      {"Conv2DNormalization", NormalizationOfConv2D<false>, kBound},
      {"Conv2DNormalizationRelu", NormalizationOfConv2D<true>, kBound, /*jumps_inside=*/true},
      {"DepthwiseConv2DNormalization", NormalizationOfDepthwiseConv2D<false>, kBound},
      {"DepthwiseConv2DNormalizationRelu", NormalizationOfDepthwiseConv2D<true>, kBound,
       /*jumps_inside=*/true},
      {"DenseRelu", ReluOfDense, kBound, /*jumps_inside=*/true},
      {"AddRelu", ReluOfAdd, kBound, /*jumps_inside=*/true},
      {"BatchNormalizationRelu", ReluOfBatchNormalization, kBound, /*jumps_inside=*/true},
      {"BatchNormalizationAdd", ResidualBlocks<false>, kBound, /*jumps_inside=*/true},
      {"BatchNormalizationAddRelu", ResidualBlocks<true>, kBound, /*jumps_inside=*/true},
      {"MaxPool2DBackwardRelu", MaxPool2DOfRelu, kBound, /*jumps_inside=*/true},
  };
}

}  // namespace shoal
