#include <memory>
#include <utility>
#include <vector>

#include "common/model/ops/dense.h"
#include "common/model/ops/softmax.h"
#include "tests/worker/compute/op_case.h"
#include "tests/worker/compute/op_layers.h"

namespace shoal {
namespace layers {
namespace {

// --- Blocks ---

// The mean of each channel goes through layers of either type, then multiplies the image
// (Hu, Shen, Sun, "Squeeze-and-excitation networks").
ValueId SqueezeAndExcite(OpCase& c, ValueId x) {
  const int64_t channels = c.shape(x)[3];
  ValueId y = GlobalAveragePool2D(c, x, /*keep_dims=*/true);
  if (c.Flip()) y = AnyActivation(c, y);
  if (c.Flip()) y = DepthwiseConv2D(c, y, kPixel);
  if (c.Flip()) y = AnyActivation(c, Conv2D(c, y, Channels(c), kPixel));
  if (c.shape(y)[3] != channels || c.Flip()) y = Conv2D(c, y, channels, kPixel);
  y = Activation(c, y, {.kind = Activated::kSigmoid});
  return c.Flip() ? Binary(c, BinaryOp::Kind::kMultiply, x, y)
                  : Binary(c, BinaryOp::Kind::kMultiply, y, x);
}

// The image and numbers for each of its channels: those of each example, of the batch, or
// variables.
ValueId PerChannel(OpCase& c, ValueId x) {
  const Shape shape = c.shape(x);
  const auto numbers = [&] {
    switch (c.Pick(0, 4)) {
      case 0:
        return MeanTo(c, Rescale(c, x), {shape[0], 1, 1, shape[3]});
      case 1:
        return MeanTo(c, x, {1, 1, 1, shape[3]});
      case 2:
        return MeanTo(c, x, {shape[3]});
      case 3:
        return c.Tensor({1, 1, shape[3]});
      default:
        return c.Tensor({shape[3]});
    }
  }();
  const auto kind = OneOf<BinaryOp::Kind, 3>(
      c, {BinaryOp::Kind::kAdd, BinaryOp::Kind::kSubtract, BinaryOp::Kind::kMultiply});
  return c.Flip() ? Binary(c, kind, x, numbers) : Binary(c, kind, numbers, x);
}

// An image of the shape of x, which another path leaves: in a layout of its own.
ValueId Branch(OpCase& c, ValueId x) {
  const int64_t channels = c.shape(x)[3];
  switch (c.Pick(0, 4)) {
    case 0:
      return AnyActivation(c, Conv2D(c, x, channels, kSame3x3));
    case 1:
      return BatchNormalization(c, DepthwiseConv2D(c, x, kSame3x3));
    case 2:
      return Rescale(c, x);
    case 3:
      return Resize(c, Pool2D(c, x), c.shape(x)[1], c.shape(x)[2]);
    default:
      return Conv2D(c, BatchNormalization(c, Conv2D(c, x, Channels(c), kPixel)), channels, kPixel);
  }
}

ValueId Residual(OpCase& c, ValueId x) {
  std::vector<ValueId> terms = {x, Branch(c, x)};
  if (c.Flip()) terms.push_back(Branch(c, x));
  if (c.Flip()) std::swap(terms[0], terms[1]);
  const ValueId sum = Add(c, std::move(terms));
  return c.Flip() ? AnyActivation(c, sum) : sum;
}

ValueId Merge(OpCase& c, ValueId x) {
  const ValueId a = Branch(c, x), b = Branch(c, x);
  if (c.Flip()) return Concatenate(c, {a, b}, static_cast<int>(c.Pick(1, 3)));
  return Binary(c, c.Flip() ? BinaryOp::Kind::kMultiply : BinaryOp::Kind::kSubtract, a, b);
}

// Any of them. A large image does not grow any further.
ValueId AnyStep(OpCase& c, ValueId x) {
  const Shape shape = c.shape(x);
  const bool large = ElementCount(shape) > 8000;
  const int64_t stride = large ? 2 : c.Pick(1, 2);
  const Window window = {
      .size = {c.Pick(1, 3), c.Pick(1, 3)}, .strides = {stride, stride}, .padding = Padding::kSame};
  switch (c.Pick(0, 13)) {
    case 0:
    case 1:
      return Conv2D(c, x, Channels(c), window);
    case 2:
      return DepthwiseConv2D(c, x, window);
    case 3:
      return Pool2D(c, x);
    case 4:
    case 5:
      return AnyActivation(c, x);
    case 6:
      return BatchNormalization(c, x);
    case 7:
      return SqueezeAndExcite(c, x);
    case 8:
      return Residual(c, x);
    case 9:
      return large ? Pool2D(c, x) : Merge(c, x);
    case 10:
      return large ? Pool2D(c, x) : Resize(c, x, 2 * shape[1], 2 * shape[2]);
    case 11:
      return PadOrCrop(c, x);
    case 12:
      return DenseOfPixels(c, x);
    default:
      return c.Flip() ? Dropout(c, x) : LayerNormalization(c, x);
  }
}

// What a classifier or a network of pixels ends with.
void SetHead(OpCase& c, ValueId x) {
  const int64_t channels = c.shape(x)[3];
  switch (c.Pick(0, 3)) {
    case 0:
      return c.SetOutput(x);
    case 1:
      return c.SetOutput(c.Add(std::make_shared<SoftmaxOp>(), {x}));
    case 2:
      x = GlobalAveragePool2D(c, x, /*keep_dims=*/true);
      if (c.Flip()) x = AnyActivation(c, x);
      return c.SetOutput(Conv2D(c, x, Channels(c), kPixel));
    default:
      x = GlobalAveragePool2D(c, x, /*keep_dims=*/false);
      return c.SetOutput(
          c.Add(std::make_shared<DenseOp>(), {x, c.Kernel({channels, 3}, channels)}));
  }
}

// Before a normalization there are gradients that are zero but for rounding.
constexpr double kBound = 1e-3;

// Between convolutions, and with every other kind of op before and behind.
template <ValueId (*block)(OpCase&, ValueId)>
void InTheMiddle(OpCase& c) {
  ValueId x = FirstImage(c);
  x = AnyActivation(c, Conv2D(c, x, Channels(c), kSame3x3));
  x = block(c, AnyStep(c, x));
  SetHead(c, c.Flip() ? AnyStep(c, x) : Conv2D(c, x, Channels(c), kSame3x3));
}

void Chain(OpCase& c) {
  ValueId x = FirstImage(c);
  for (int64_t steps = c.Pick(3, 7); steps > 0; --steps) x = AnyStep(c, x);
  SetHead(c, x);
}

}  // namespace
}  // namespace layers

std::vector<NamedOpCase> OpBlockCases() {
  using namespace layers;
  return {
      {"SqueezeAndExcite", InTheMiddle<SqueezeAndExcite>, kBound, /*jumps_inside=*/true},
      {"PerChannel", InTheMiddle<PerChannel>, kBound, /*jumps_inside=*/true},
      {"Residual", InTheMiddle<Residual>, kBound, /*jumps_inside=*/true},
      {"Merge", InTheMiddle<Merge>, kBound, /*jumps_inside=*/true},
      {"Chain", Chain, kBound, /*jumps_inside=*/true},
  };
}

}  // namespace shoal
