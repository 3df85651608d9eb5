#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "common/model/ops/activation.h"
#include "common/model/ops/add.h"
#include "common/model/ops/batch_normalization.h"
#include "common/model/ops/binary.h"
#include "common/model/ops/concatenate.h"
#include "common/model/ops/conv2d.h"
#include "common/model/ops/dense.h"
#include "common/model/ops/depthwise_conv2d.h"
#include "common/model/ops/dropout.h"
#include "common/model/ops/layer_normalization.h"
#include "common/model/ops/pad.h"
#include "common/model/ops/pool2d.h"
#include "common/model/ops/rescale.h"
#include "common/model/ops/reshape.h"
#include "common/model/ops/resize.h"
#include "common/model/ops/softmax.h"
#include "tests/worker/compute/op_case.h"

namespace shoal {
namespace {

using Activated = ActivationAttributes::Kind;

constexpr Window kPixel = {};
constexpr Window kSame3x3 = {.size = {3, 3}, .padding = Padding::kSame};

template <typename T, size_t n>
T OneOf(OpCase& c, const std::array<T, n>& choices) {
  return choices[c.Pick(0, n - 1)];
}

// Blocked layouts have blocks of 8 or 16 channels: full ones, and ones that are filled up.
int64_t Channels(OpCase& c) { return OneOf<int64_t, 6>(c, {4, 8, 12, 16, 24, 33}); }

// --- Layers: each appends ops behind an image and returns their result ---

ValueId Conv2D(OpCase& c, ValueId x, int64_t filters, const Window& window) {
  auto op = std::make_shared<Conv2DOp>();
  op->window = window;
  const Shape kernel = {window.size[0], window.size[1], c.shape(x)[3], filters};
  std::vector<ValueId> inputs = {x, c.Kernel(kernel, ElementCount(kernel) / filters)};
  if (c.Flip()) inputs.push_back(c.Tensor({filters}));
  return c.Add(std::move(op), std::move(inputs));
}

ValueId DepthwiseConv2D(OpCase& c, ValueId x, const Window& window) {
  auto op = std::make_shared<DepthwiseConv2DOp>();
  op->window = window;
  const Shape kernel = {window.size[0], window.size[1], c.shape(x)[3], 1};
  return c.Add(std::move(op), {x, c.Kernel(kernel, window.size[0] * window.size[1])});
}

ValueId Activation(OpCase& c, ValueId x, const ActivationAttributes& attributes) {
  auto op = std::make_shared<ActivationOp>();
  op->attributes = attributes;
  return c.Add(std::move(op), {x});
}

ValueId AnyActivation(OpCase& c, ValueId x) {
  return Activation(
      c, x,
      OneOf<ActivationAttributes, 8>(c, {{{},
                                          {},
                                          {.max_value = 1},
                                          {.kind = Activated::kLeakyRelu, .negative_slope = 0.3},
                                          {.kind = Activated::kSigmoid},
                                          {.kind = Activated::kTanh},
                                          {.kind = Activated::kSilu},
                                          {.kind = Activated::kMish}}}));
}

ValueId BatchNormalization(OpCase& c, ValueId x) {
  const Shape channels = {c.shape(x)[3]};
  // Of a few numbers the variance may be near 0, and the gradient anything.
  if (ElementCount(c.shape(x)) / channels[0] < 12) return x;
  const std::vector<ValueId> inputs = {x, c.MovingAverage(channels, OpCase::Fill::kNormal),
                                       c.MovingAverage(channels, OpCase::Fill::kPositive),
                                       c.Tensor(channels), c.Tensor(channels)};
  const std::vector<ValueId> outputs = c.AddNode(std::make_shared<BatchNormalizationOp>(), inputs);
  for (const int i : {1, 2}) c.SetSample(inputs[i], outputs[i]);
  return outputs[0];
}

ValueId LayerNormalization(OpCase& c, ValueId x) {
  const Shape channels = {c.shape(x)[3]};
  return c.Add(std::make_shared<LayerNormalizationOp>(),
               {x, c.Tensor(channels), c.Tensor(channels)});
}

ValueId Pool2D(OpCase& c, ValueId x) {
  auto op = std::make_shared<Pool2DOp>();
  op->kind = c.Flip() ? Pool2DOp::Kind::kMax : Pool2DOp::Kind::kAverage;
  const int64_t stride = c.Pick(1, 2);
  op->window = {.size = {2, 2}, .strides = {stride, stride}, .padding = Padding::kSame};
  return c.Add(std::move(op), {x});
}

ValueId GlobalAveragePool2D(OpCase& c, ValueId x, bool keep_dims) {
  auto op = std::make_shared<GlobalAveragePool2DOp>();
  op->keep_dims = keep_dims;
  return c.Add(std::move(op), {x});
}

ValueId Add(OpCase& c, std::vector<ValueId> terms) {
  return c.Add(std::make_shared<AddOp>(), std::move(terms));
}

ValueId Binary(OpCase& c, BinaryOp::Kind kind, ValueId a, ValueId b) {
  auto op = std::make_shared<BinaryOp>();
  op->kind = kind;
  return c.Add(std::move(op), {a, b});
}

ValueId Concatenate(OpCase& c, std::vector<ValueId> parts, int axis) {
  auto op = std::make_shared<ConcatenateOp>();
  op->axis = axis;
  return c.Add(std::move(op), std::move(parts));
}

ValueId Resize(OpCase& c, ValueId x, int64_t height, int64_t width) {
  auto op = std::make_shared<ResizeOp>();
  op->height = height;
  op->width = width;
  op->interpolation =
      c.Flip() ? ResizeOp::Interpolation::kNearest : ResizeOp::Interpolation::kBilinear;
  return c.Add(std::move(op), {x});
}

// Zeros around the image, or the image without its sides.
ValueId PadOrCrop(OpCase& c, ValueId x) {
  const Margins margins = {.before = {1, 0, 0}, .after = {0, 1, 0}};
  auto pad = std::make_shared<PadOp>();
  auto crop = std::make_shared<CropOp>();
  pad->margins = crop->margins = margins;
  const bool fits = c.shape(x)[1] > 3 && c.shape(x)[2] > 3;
  return fits && c.Flip() ? c.Add(std::move(crop), {x}) : c.Add(std::move(pad), {x});
}

ValueId Dropout(OpCase& c, ValueId x) {
  auto op = std::make_shared<DropoutOp>();
  op->rate = 0.3;
  op->layer_seed = c.Pick(0, 100);
  return c.Add(std::move(op), {x});
}

ValueId Rescale(OpCase& c, ValueId x) {
  auto op = std::make_shared<RescaleOp>();
  op->scale = {0.5};
  op->offset = {0.25};
  return c.Add(std::move(op), {x});
}

// The rows of the image below each other, and a dense layer over the channels.
ValueId DenseOfPixels(OpCase& c, ValueId x) {
  const Shape shape = c.shape(x);
  const int64_t units = Channels(c);
  auto rows = std::make_shared<ReshapeOp>();
  rows->shape = {shape[0], shape[1] * shape[2], shape[3]};
  auto image = std::make_shared<ReshapeOp>();
  image->shape = {shape[0], shape[1], shape[2], units};
  const ValueId y = c.Add(
      std::make_shared<DenseOp>(),
      {c.Add(std::move(rows), {x}), c.Kernel({shape[3], units}, shape[3]), c.Tensor({units})});
  return c.Add(std::move(image), {y});
}

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

ValueId FirstImage(OpCase& c) {
  return c.Image({c.Pick(1, 5), c.Pick(2, 8), c.Pick(2, 8), Channels(c)});
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

std::vector<NamedOpCase> OpBlockCases() {
  return {
      {"SqueezeAndExcite", InTheMiddle<SqueezeAndExcite>, kBound, /*jumps_inside=*/true},
      {"Residual", InTheMiddle<Residual>, kBound, /*jumps_inside=*/true},
      {"Merge", InTheMiddle<Merge>, kBound, /*jumps_inside=*/true},
      {"Chain", Chain, kBound, /*jumps_inside=*/true},
  };
}

}  // namespace shoal
