#include "tests/worker/compute/op_layers.h"

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "common/model/ops/add.h"
#include "common/model/ops/batch_normalization.h"
#include "common/model/ops/concatenate.h"
#include "common/model/ops/conv2d.h"
#include "common/model/ops/dense.h"
#include "common/model/ops/depthwise_conv2d.h"
#include "common/model/ops/dropout.h"
#include "common/model/ops/layer_normalization.h"
#include "common/model/ops/pad.h"
#include "common/model/ops/pool2d.h"
#include "common/model/ops/reduce.h"
#include "common/model/ops/rescale.h"
#include "common/model/ops/reshape.h"
#include "common/model/ops/resize.h"
#include "common/model/ops/softmax.h"

namespace shoal::layers {

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
  // The variance of a few numbers may be near 0, and the gradient anything.
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

ValueId MeanTo(OpCase& c, ValueId x, Shape shape) {
  auto scale = std::make_shared<RescaleOp>();
  scale->scale = {static_cast<double>(ElementCount(shape)) /
                  static_cast<double>(ElementCount(c.shape(x)))};
  auto sum = std::make_shared<SumToOp>();
  sum->shape = std::move(shape);
  return c.Add(std::move(scale), {c.Add(std::move(sum), {x})});
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

ValueId FirstImage(OpCase& c) {
  return c.Image({c.Pick(1, 5), c.Pick(2, 8), c.Pick(2, 8), Channels(c)});
}

}  // namespace shoal::layers
