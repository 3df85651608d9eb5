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
#include "common/model/ops/gather.h"
#include "common/model/ops/glu.h"
#include "common/model/ops/layer_normalization.h"
#include "common/model/ops/mode_switch.h"
#include "common/model/ops/pad.h"
#include "common/model/ops/pool2d.h"
#include "common/model/ops/random_uniform.h"
#include "common/model/ops/reduce.h"
#include "common/model/ops/rescale.h"
#include "common/model/ops/reshape.h"
#include "common/model/ops/resize.h"
#include "common/model/ops/softmax.h"
#include "common/model/ops/sparsemax.h"
#include "common/model/ops/unary.h"
#include "common/model/ops/warp.h"
#include "tests/worker/compute/op_case.h"

namespace shoal {
namespace {

// --- Dense ---

void Dense(OpCase& c) {
  Shape x = {c.Pick(1, 40), c.Pick(1, 90)};
  if (c.Flip()) x.insert(x.begin() + 1, c.Pick(1, 4));
  const int64_t units = c.Pick(1, 90);
  std::vector<ValueId> inputs = {c.Tensor(x), c.Tensor({x.back(), units})};
  if (c.Flip()) inputs.push_back(c.Tensor({units}));
  c.SetOutput(c.Add(std::make_shared<DenseOp>(), std::move(inputs)));
}

// --- Convolution and pooling ---

// A window that fits into the image; strides or dilation, as in Keras; perhaps with zeros around
// the image, fewer than it covers.
Window FittingWindow(OpCase& c, const Shape& image) {
  Window window;
  do {
    const bool dilated = c.Flip();
    for (int axis = 0; axis < 2; ++axis) {
      window.size[axis] = c.Pick(1, 4);
      window.strides[axis] = dilated ? 1 : c.Pick(1, 5);
      window.dilation[axis] = dilated ? c.Pick(1, 3) : 1;
    }
    window.padding = c.Flip() ? Padding::kSame : Padding::kValid;
    if (window.padding == Padding::kSame) continue;
    for (int axis = 0; axis < 2; ++axis) {
      const int64_t most = (window.size[axis] - 1) * window.dilation[axis];
      window.zeros_before[axis] = c.Pick(0, most);
      window.zeros_after[axis] = c.Pick(0, most);
    }
  } while (!window.OutputShape(image).ok());
  return window;
}

void Conv2D(OpCase& c) {
  auto op = std::make_shared<Conv2DOp>();
  op->groups = c.Flip() ? 1 : c.Pick(2, 6);
  Shape image = c.ImageShape();
  image[3] = op->groups * c.Pick(1, op->groups == 1 ? 24 : 6);
  op->window = FittingWindow(c, image);
  const int64_t filters = op->groups * c.Pick(1, op->groups == 1 ? 36 : 9);
  std::vector<ValueId> inputs = {c.Image(image), c.Tensor({op->window.size[0], op->window.size[1],
                                                           image[3] / op->groups, filters})};
  if (c.Flip()) inputs.push_back(c.Tensor({filters}));
  c.SetOutput(c.Add(std::move(op), std::move(inputs)));
}

void DepthwiseConv2D(OpCase& c) {
  const Shape image = c.ImageShape();
  auto op = std::make_shared<DepthwiseConv2DOp>();
  op->window = FittingWindow(c, image);
  const int64_t multiplier = c.Flip() ? 1 : c.Pick(2, 3);
  std::vector<ValueId> inputs = {
      c.Image(image), c.Tensor({op->window.size[0], op->window.size[1], image[3], multiplier})};
  if (c.Flip()) inputs.push_back(c.Tensor({image[3] * multiplier}));
  c.SetOutput(c.Add(std::move(op), std::move(inputs)));
}

// A convolution's gradient as an op of its own.
void TransposedConv2D(OpCase& c) {
  const Shape image = c.ImageShape();
  auto op = std::make_shared<Conv2DBackwardDataOp>();
  op->window = FittingWindow(c, image);
  op->x_shape = image;
  Shape y = op->window.OutputShape(image).value();
  y[3] = c.Pick(1, 20);
  const Shape kernel = {op->window.size[0], op->window.size[1], image[3], y[3]};
  c.SetOutput(c.Add(std::move(op), {c.Image(y), c.Tensor(kernel)}));
}

void Pool2D(OpCase& c, Pool2DOp::Kind kind) {
  const Shape image = c.ImageShape();
  auto op = std::make_shared<Pool2DOp>();
  op->kind = kind;
  // oneDNN's dilated average counts otherwise; Keras has none.
  do {
    op->window = FittingWindow(c, image);
  } while (op->window.dilation != std::array<int64_t, 2>{1, 1});
  c.SetOutput(c.Add(std::move(op), {c.Image(image)}));
}

// Of more elements than a byte numbers.
void LargeMaxPool2D(OpCase& c) {
  auto op = std::make_shared<Pool2DOp>();
  op->window = {.size = {20, 16}};
  c.SetOutput(c.Add(std::move(op), {c.Image({1, c.Pick(20, 21), c.Pick(16, 17), c.Pick(1, 4)})}));
}

void GlobalAveragePool2D(OpCase& c) {
  auto op = std::make_shared<GlobalAveragePool2DOp>();
  op->keep_dims = c.Flip();
  c.SetOutput(c.Add(std::move(op), {c.Image(c.ImageShape())}));
}

template <ResizeOp::Interpolation interpolation>
void Resize(OpCase& c) {
  auto op = std::make_shared<ResizeOp>();
  op->height = c.Pick(1, 30);
  op->width = c.Pick(1, 30);
  op->interpolation = interpolation;
  c.SetOutput(c.Add(std::move(op), {c.Image(c.ImageShape())}));
}

// Of images that are a few pixels small, with maps that reach far beyond their sides.
void Warp(OpCase& c, WarpAttributes::Kind kind) {
  using Kind = WarpAttributes::Kind;
  const ValueId image = c.Image(c.ImageShape());
  const Shape x = c.shape(image);
  auto op = std::make_shared<WarpOp>();
  op->attributes = {
      .kind = kind,
      .flip_rows = c.Flip(),
      .flip_columns = c.Flip(),
      .fill = static_cast<WarpAttributes::Fill>(c.Pick(0, 10) % 4),
      .fill_value = 0.3,
      .interpolation =
          c.Flip() ? ResizeOp::Interpolation::kNearest : ResizeOp::Interpolation::kBilinear,
  };
  op->height = kind == Kind::kCrop ? c.Pick(1, x[1]) : x[1];
  op->width = kind == Kind::kCrop ? c.Pick(1, x[2]) : x[2];
  auto numbers = std::make_shared<RandomUniformOp>();
  numbers->layer_seed = c.Pick(0, 100);
  numbers->one_of_batch = c.Flip();
  switch (kind) {
    case Kind::kFlip:
      break;
    case Kind::kTranslate:
      numbers->ranges = {{-3, 3}, {-1, 1}};
      break;
    case Kind::kRotate:
      numbers->ranges = {{-1, 1}};
      break;
    case Kind::kZoom:
      numbers->ranges = {{0.1, 3}};
      if (c.Flip()) numbers->ranges.push_back({0.5, 1});
      break;
    case Kind::kCrop:
      numbers->whole = true;
      numbers->ranges = {{0, static_cast<double>(x[1] - op->height + 1)},
                         {0, static_cast<double>(x[2] - op->width + 1)}};
      break;
  }
  c.SetOutput(c.Add(std::move(op), {image, c.Add(std::move(numbers), {image})}));
}

void ModeSwitch(OpCase& c) {
  const Shape shape = c.ImageShape();
  const ValueId image = c.Image(shape), other = c.Input(shape, OpCase::Fill::kNormal);
  const ValueId active = c.Add(std::make_shared<ActivationOp>(), {image});
  c.SetOutput(c.Add(std::make_shared<ModeSwitchOp>(), {active, other}));
}

// --- Normalization ---

void BatchNormalization(OpCase& c, bool frozen) {
  auto op = std::make_shared<BatchNormalizationOp>();
  op->epsilon = 0.001 * c.Pick(1, 10);
  op->scale = c.Flip();
  op->center = c.Flip();
  op->frozen = frozen;
  Shape shape = c.ImageShape();
  if (c.Flip()) shape = {c.Pick(2, 40), c.Pick(1, 40)};
  const Shape channels = {shape.back()};
  std::vector<ValueId> inputs = {shape.size() == 4 ? c.Image(shape) : c.Tensor(shape)};
  for (const auto fill : {OpCase::Fill::kNormal, OpCase::Fill::kPositive}) {
    inputs.push_back(frozen ? c.Input(channels, fill) : c.MovingAverage(channels, fill));
  }
  if (op->scale) inputs.push_back(c.Tensor(channels));
  if (op->center) inputs.push_back(c.Tensor(channels));
  const std::vector<ValueId> outputs = c.AddNode(std::move(op), inputs);
  for (const int i : {1, 2}) {
    if (!frozen) c.SetSample(inputs[i], outputs[i]);
  }
  c.SetOutput(outputs[0]);
}

// Sums of squares would not tell the variance from nothing.
void BatchNormalizationFarFromZero(OpCase& c) {
  const Shape shape = {c.Pick(1000, 2000), c.Pick(1, 40)};
  const Shape channels = {shape[1]};
  auto op = std::make_shared<BatchNormalizationOp>();
  op->scale = op->center = false;
  const ValueId x = c.Tensor(shape, OpCase::Fill::kFar);
  const ValueId y = c.Add(std::move(op), {x, c.Input(channels, OpCase::Fill::kNormal),
                                          c.Input(channels, OpCase::Fill::kPositive)});
  c.SetOutput(y);
}

void LayerNormalization(OpCase& c) {
  auto op = std::make_shared<LayerNormalizationOp>();
  op->epsilon = 0.001 * c.Pick(1, 10);
  op->scale = c.Flip();
  op->center = c.Flip();
  const Shape shape = c.ImageShape();
  std::vector<ValueId> inputs = {c.Image(shape)};
  if (op->scale) inputs.push_back(c.Tensor({shape.back()}));
  if (op->center) inputs.push_back(c.Tensor({shape.back()}));
  c.SetOutput(c.Add(std::move(op), std::move(inputs)));
}

// --- Elements ---

template <ActivationAttributes::Kind kind>
void Activation(OpCase& c) {
  auto op = std::make_shared<ActivationOp>();
  op->attributes.kind = kind;
  op->attributes.negative_slope = c.Flip() ? 0 : 0.1 * c.Pick(1, 9);
  if (c.Flip()) op->attributes.max_value = 0.5 * c.Pick(1, 3);
  if (c.Flip()) op->attributes.threshold = 0.1 * c.Pick(-3, 3);
  c.SetOutput(c.Add(std::move(op), {c.Image(c.ImageShape())}));
}

void Softmax(OpCase& c, SoftmaxOp::Kind kind) {
  Shape shape = {c.Pick(1, 9), c.Pick(2, 70)};
  if (c.Flip()) shape.insert(shape.begin() + 1, c.Pick(1, 4));
  auto op = std::make_shared<SoftmaxOp>();
  op->kind = kind;
  c.SetOutput(c.Add(std::move(op), {c.Tensor(shape)}));
}

// Narrow rows: wide ones are all zero.
void Sparsemax(OpCase& c) {
  Shape shape = {c.Pick(1, 9), c.Pick(2, 9)};
  if (c.Flip()) shape.insert(shape.begin() + 1, c.Pick(1, 4));
  c.SetOutput(c.Add(std::make_shared<SparsemaxOp>(), {c.Tensor(shape)}));
}

void Glu(OpCase& c) {
  Shape shape = {c.Pick(1, 40), 2 * c.Pick(1, 20)};
  if (c.Flip()) shape.insert(shape.begin() + 1, c.Pick(1, 4));
  c.SetOutput(c.Add(std::make_shared<GluOp>(), {c.Tensor(shape)}));
}

void Dropout(OpCase& c) {
  auto op = std::make_shared<DropoutOp>();
  op->rate = 0.1 * c.Pick(0, 9);
  op->layer_seed = c.Pick(0, 100);
  const Shape shape = c.ImageShape();
  if (c.Flip()) op->groups = {.block = ElementCount(shape) / shape[0], .period = shape[3]};
  c.SetOutput(c.Add(std::move(op), {c.Image(shape)}));
}

void Rescale(OpCase& c) {
  const Shape image = c.ImageShape();
  auto op = std::make_shared<RescaleOp>();
  for (std::vector<double>* factors : {&op->scale, &op->offset}) {
    factors->resize(c.Flip() ? 1 : image[3]);
    for (double& factor : *factors) factor = 0.25 * c.Pick(-9, 9);
  }
  c.SetOutput(c.Add(std::move(op), {c.Image(image)}));
}

// Two shapes that go together: extents and leading axes are left out here and there.
std::vector<Shape> BroadcastingShapes(OpCase& c) {
  std::vector<Shape> shapes(2);
  for (int64_t axes = c.Pick(1, 4); axes > 0; --axes) {
    const int64_t extent = c.Pick(1, 12);
    for (Shape& shape : shapes) shape.push_back(c.Pick(0, 2) == 0 ? 1 : extent);
  }
  Shape& second = shapes[1];
  while (second.size() > 1 && second[0] == 1 && c.Flip()) second.erase(second.begin());
  if (c.Flip()) std::swap(shapes[0], shapes[1]);
  return shapes;
}

// The second stays away from zero, for the division.
template <BinaryOp::Kind kind>
void Binary(OpCase& c) {
  auto op = std::make_shared<BinaryOp>();
  op->kind = kind;
  const std::vector<Shape> shapes = BroadcastingShapes(c);
  const ValueId a = c.Tensor(shapes[0]);
  c.SetOutput(c.Add(std::move(op), {a, c.Tensor(shapes[1], OpCase::Fill::kPositive)}));
}

template <UnaryOp::Kind kind>
void Unary(OpCase& c) {
  auto op = std::make_shared<UnaryOp>();
  op->kind = kind;
  op->exponent = 0.5 * c.Pick(1, 5) * (c.Flip() ? 1 : -1);  // not 0, which has no gradient
  op->low = -0.1 * c.Pick(0, 5);
  op->high = 0.1 * c.Pick(1, 9);
  const bool positive = kind == UnaryOp::Kind::kLog || kind == UnaryOp::Kind::kSquareRoot ||
                        kind == UnaryOp::Kind::kPower;
  const Shape image = c.ImageShape();
  c.SetOutput(
      c.Add(std::move(op), {positive ? c.Tensor(image, OpCase::Fill::kPositive) : c.Image(image)}));
}

// A shape whose repetition gives `shape`.
Shape RepeatedShape(OpCase& c, Shape shape) {
  for (int64_t& extent : shape) {
    if (c.Flip()) extent = 1;
  }
  while (shape.size() > 1 && shape[0] == 1 && c.Flip()) shape.erase(shape.begin());
  return shape;
}

template <typename ReduceOp>
void Reduce(OpCase& c) {
  const Shape image = c.ImageShape();
  auto op = std::make_shared<ReduceOp>();
  op->shape = RepeatedShape(c, image);
  c.SetOutput(c.Add(std::move(op), {c.Image(image)}));
}

void BroadcastLike(OpCase& c) {
  const Shape image = c.ImageShape();
  const ValueId x = c.Tensor(RepeatedShape(c, image));
  c.SetOutput(c.Add(std::make_shared<BroadcastLikeOp>(), {x, c.ClassIds(image, 2)}));
}

void MeanGradient(OpCase& c) {
  const Shape shape = {c.Pick(1, 9), c.Pick(1, 9)};
  const ValueId mean = c.Add(std::make_shared<MeanGradientOp>(), {c.ClassIds(shape, 2)});
  c.SetOutput(c.Add(std::make_shared<AddOp>(), {c.Tensor(shape), mean}));
}

// --- Shape ---

void Reshape(OpCase& c) {
  const Shape image = c.ImageShape();
  auto op = std::make_shared<ReshapeOp>();
  op->shape = {image[0], image[2] * image[3], image[1]};
  c.SetOutput(c.Add(std::move(op), {c.Image(image)}));
}

void Add(OpCase& c) {
  const Shape image = c.ImageShape();
  std::vector<ValueId> inputs;
  for (int64_t i = c.Pick(2, 4); i > 0; --i) inputs.push_back(c.Image(image));
  c.SetOutput(c.Add(std::make_shared<AddOp>(), std::move(inputs)));
}

Margins RandomMargins(OpCase& c, size_t axes) {
  Margins margins;
  for (size_t axis = 1; axis < axes; ++axis) {
    margins.before.push_back(c.Flip() ? 0 : c.Pick(0, 3));
    margins.after.push_back(c.Flip() ? 0 : c.Pick(0, 3));
  }
  return margins;
}

void Pad(OpCase& c) {
  auto op = std::make_shared<PadOp>();
  op->margins = RandomMargins(c, 4);
  c.SetOutput(c.Add(std::move(op), {c.Image(c.ImageShape())}));
}

void Crop(OpCase& c) {
  auto op = std::make_shared<CropOp>();
  op->margins = RandomMargins(c, 4);
  Shape image = c.ImageShape();
  for (int axis = 1; axis < 4; ++axis) {
    image[axis] += op->margins.before[axis - 1] + op->margins.after[axis - 1];
  }
  c.SetOutput(c.Add(std::move(op), {c.Image(image)}));
}

void Concatenate(OpCase& c) {
  Shape image = c.ImageShape();
  auto op = std::make_shared<ConcatenateOp>();
  op->axis = static_cast<int>(c.Pick(1, 3));
  std::vector<ValueId> inputs;
  for (int64_t i = c.Pick(1, 4); i > 0; --i) {
    image[op->axis] = c.Pick(1, 32);
    inputs.push_back(c.Image(image));
  }
  c.SetOutput(c.Add(std::move(op), std::move(inputs)));
}

void Gather(OpCase& c) {
  Shape ids = {c.Pick(1, 20)};
  if (c.Flip()) ids.push_back(c.Pick(1, 5));
  const Shape table = {c.Pick(1, 50), c.Pick(1, 20)};
  const ValueId rows = c.Tensor(table);
  c.SetOutput(c.Add(std::make_shared<GatherOp>(), {rows, c.ClassIds(ids, table[0])}));
}

// --- Losses ---

// The loss of what an op leaves that changes nothing; positive numbers where it takes
// probabilities.
void WithLoss(OpCase& c, std::shared_ptr<const Loss> loss, OpCase::Fill fill) {
  Shape shape = {c.Pick(1, 20), c.Pick(2, 12)};
  if (c.Flip()) shape.insert(shape.begin() + 1, c.Pick(1, 3));
  const ValueId prediction = c.Add(std::make_shared<RescaleOp>(), {c.Tensor(shape, fill)});
  std::vector<float> target(ElementCount(loss->TargetShape(shape).value()));
  for (float& value : target) {
    value = static_cast<float>(loss->target() == Loss::Target::kClassNumber
                                   ? c.Pick(0, shape.back() - 1)
                                   : c.Pick(1, 5) / 5.0);
  }
  c.SetLoss(prediction, std::move(loss), std::move(target));
}

// A variable that is read twice, and one that nothing reads.
void Regularized(OpCase& c, const Regularizer& regularizer) {
  const Shape shape = {c.Pick(2, 6), c.Pick(2, 9)};
  const ValueId x = c.Tensor(shape, OpCase::Fill::kNormal, regularizer);
  c.Tensor({3, 2}, OpCase::Fill::kNormal, regularizer);
  c.SetOutput(c.Add(std::make_shared<AddOp>(), {x, c.Add(std::make_shared<RescaleOp>(), {x})}));
}

constexpr auto kPositive = OpCase::Fill::kPositive;
constexpr auto kNormal = OpCase::Fill::kNormal;

}  // namespace

std::vector<NamedOpCase> OpCases() {
  using Activated = ActivationAttributes::Kind;
  return {
      {"Dense", Dense},
      {"Conv2D", Conv2D},
      {"DepthwiseConv2D", DepthwiseConv2D},
      {"TransposedConv2D", TransposedConv2D},
      {"ResizeToNearest", Resize<ResizeOp::Interpolation::kNearest>},
      {"ResizeBilinearly", Resize<ResizeOp::Interpolation::kBilinear>},
      {"Flip", [](OpCase& c) { Warp(c, WarpAttributes::Kind::kFlip); }},
      {"Translate", [](OpCase& c) { Warp(c, WarpAttributes::Kind::kTranslate); }},
      {"Rotate", [](OpCase& c) { Warp(c, WarpAttributes::Kind::kRotate); }},
      {"Zoom", [](OpCase& c) { Warp(c, WarpAttributes::Kind::kZoom); }},
      {"WarpToCrop", [](OpCase& c) { Warp(c, WarpAttributes::Kind::kCrop); }},
      {"ModeSwitch", ModeSwitch},
      {"BatchNormalization", [](OpCase& c) { BatchNormalization(c, false); }, 1e-4},
      {"FrozenBatchNormalization", [](OpCase& c) { BatchNormalization(c, true); }},
      {"BatchNormalizationFarFromZero", BatchNormalizationFarFromZero, 1e-3},
      {"LayerNormalization", LayerNormalization, 1e-4},
      {"Gather", Gather},
      {"MaxPool2D", [](OpCase& c) { Pool2D(c, Pool2DOp::Kind::kMax); }},
      {"LargeMaxPool2D", LargeMaxPool2D},
      {"AveragePool2D", [](OpCase& c) { Pool2D(c, Pool2DOp::Kind::kAverage); }},
      {"GlobalAveragePool2D", GlobalAveragePool2D},
      {"Relu", Activation<Activated::kRelu>},
      {"LeakyRelu", Activation<Activated::kLeakyRelu>},
      {"Tanh", Activation<Activated::kTanh>},
      {"Sigmoid", Activation<Activated::kSigmoid>},
      {"Elu", Activation<Activated::kElu>},
      {"Selu", Activation<Activated::kSelu>},
      {"Softplus", Activation<Activated::kSoftplus>},
      {"Softsign", Activation<Activated::kSoftsign>},
      {"Silu", Activation<Activated::kSilu>},
      {"Gelu", Activation<Activated::kGelu>},
      {"Exponential", Activation<Activated::kExponential>},
      {"HardSigmoid", Activation<Activated::kHardSigmoid>},
      {"HardSilu", Activation<Activated::kHardSilu>},
      {"HardTanh", Activation<Activated::kHardTanh>},
      {"HardShrink", Activation<Activated::kHardShrink>},
      {"SoftShrink", Activation<Activated::kSoftShrink>},
      {"TanhShrink", Activation<Activated::kTanhShrink>},
      {"LogSigmoid", Activation<Activated::kLogSigmoid>},
      {"Mish", Activation<Activated::kMish>},
      {"Squareplus", Activation<Activated::kSquareplus>},
      {"SparsePlus", Activation<Activated::kSparsePlus>},
      {"AddOfTwo", Binary<BinaryOp::Kind::kAdd>},
      {"Subtract", Binary<BinaryOp::Kind::kSubtract>},
      {"Multiply", Binary<BinaryOp::Kind::kMultiply>},
      {"Divide", Binary<BinaryOp::Kind::kDivide>},
      {"Maximum", Binary<BinaryOp::Kind::kMaximum>},
      {"Minimum", Binary<BinaryOp::Kind::kMinimum>},
      {"Exp", Unary<UnaryOp::Kind::kExp>},
      {"Log", Unary<UnaryOp::Kind::kLog>},
      {"Abs", Unary<UnaryOp::Kind::kAbs>},
      {"Square", Unary<UnaryOp::Kind::kSquare>},
      {"SquareRoot", Unary<UnaryOp::Kind::kSquareRoot>},
      {"Power", Unary<UnaryOp::Kind::kPower>},
      {"Clip", Unary<UnaryOp::Kind::kClip>},
      {"SumTo", Reduce<SumToOp>},
      {"MaxTo", Reduce<MaxToOp>},
      {"BroadcastLike", BroadcastLike},
      {"MeanGradient", MeanGradient},
      {"Softmax", [](OpCase& c) { Softmax(c, SoftmaxOp::Kind::kSoftmax); }},
      {"LogSoftmax", [](OpCase& c) { Softmax(c, SoftmaxOp::Kind::kLogSoftmax); }},
      {"Sparsemax", Sparsemax},
      {"Glu", Glu},
      {"Dropout", Dropout},
      {"Rescale", Rescale},
      {"Reshape", Reshape},
      {"Add", Add},
      {"Pad", Pad},
      {"Crop", Crop},
      {"Concatenate", Concatenate},
      {"BinaryCrossentropy",
       [](OpCase& c) { WithLoss(c, LossOf("BinaryCrossentropy"), kPositive); }},
      {"BinaryCrossentropyOfLogits",
       [](OpCase& c) {
         WithLoss(c,
                  LossOf("BinaryCrossentropy", R"({"from_logits": true, "label_smoothing": 0.1})"),
                  kNormal);
       }},
      {"WeightedSparseCategoricalCrossentropy",
       [](OpCase& c) {
         WithLoss(c, LossOf("SparseCategoricalCrossentropy", R"({"from_logits": true})"), kNormal);
         c.Weigh();
       }},
      {"WeightedHuber",
       [](OpCase& c) {
         WithLoss(c, LossOf("Huber", R"({"delta": 0.4})"), kNormal);
         c.Weigh();
       }},
      {"RegularizedByL1AndL2", [](OpCase& c) { Regularized(c, {.l1 = 0.3, .l2 = 0.2}); }},
      {"RegularizedToOrthogonalRows", [](OpCase& c) { Regularized(c, {.orthogonal = 2}); }},
      {"RegularizedToOrthogonalColumns",
       [](OpCase& c) { Regularized(c, {.l2 = 0.1, .orthogonal = 2, .of_columns = true}); }},
      {"BinaryFocal", [](OpCase& c) { WithLoss(c, LossOf("BinaryFocalCrossentropy"), kPositive); }},
      {"BinaryFocalOfLogits",
       [](OpCase& c) {
         WithLoss(c,
                  LossOf("BinaryFocalCrossentropy",
                         R"({"from_logits": true, "apply_class_balancing": true, "gamma": 1.5})"),
                  kNormal);
       }},
      {"CategoricalFocal",
       [](OpCase& c) { WithLoss(c, LossOf("CategoricalFocalCrossentropy"), kPositive); }},
      {"CategoricalFocalOfLogits",
       [](OpCase& c) {
         WithLoss(c, LossOf("CategoricalFocalCrossentropy", R"({"from_logits": true})"), kNormal);
       }},
      {"CategoricalHinge", [](OpCase& c) { WithLoss(c, LossOf("CategoricalHinge"), kNormal); }},
      {"CosineSimilarity", [](OpCase& c) { WithLoss(c, LossOf("CosineSimilarity"), kNormal); }},
      {"Dice", [](OpCase& c) { WithLoss(c, LossOf("Dice"), kPositive); }},
      {"DiceOfExamples",
       [](OpCase& c) { WithLoss(c, LossOf("Dice", R"({"axis": -1})"), kPositive); }},
      {"Hinge", [](OpCase& c) { WithLoss(c, LossOf("Hinge"), kNormal); }},
      {"Huber", [](OpCase& c) { WithLoss(c, LossOf("Huber", R"({"delta": 0.4})"), kNormal); }},
      {"KLDivergence", [](OpCase& c) { WithLoss(c, LossOf("KLDivergence"), kPositive); }},
      {"LogCosh", [](OpCase& c) { WithLoss(c, LossOf("LogCosh"), kNormal); }},
      {"MeanAbsoluteError", [](OpCase& c) { WithLoss(c, LossOf("MeanAbsoluteError"), kNormal); }},
      {"MeanAbsolutePercentageError",
       [](OpCase& c) { WithLoss(c, LossOf("MeanAbsolutePercentageError"), kNormal); }},
      {"MeanSquaredLogarithmicError",
       [](OpCase& c) { WithLoss(c, LossOf("MeanSquaredLogarithmicError"), kPositive); }},
      {"Poisson", [](OpCase& c) { WithLoss(c, LossOf("Poisson"), kPositive); }},
      {"SquaredHinge", [](OpCase& c) { WithLoss(c, LossOf("SquaredHinge"), kNormal); }},
      {"Tversky",
       [](OpCase& c) {
         WithLoss(c, LossOf("Tversky", R"({"alpha": 0.3, "beta": 0.8, "axis": [1]})"), kPositive);
       }},
      {"MeanSquaredError", [](OpCase& c) { WithLoss(c, LossOf("MeanSquaredError"), kNormal); }},
      {"SparseCrossentropyOfLogits",
       [](OpCase& c) {
         WithLoss(c, LossOf("SparseCategoricalCrossentropy", R"({"from_logits": true})"), kNormal);
       }},
      {"SparseCrossentropyOfProbabilities",
       [](OpCase& c) { WithLoss(c, LossOf("SparseCategoricalCrossentropy"), kPositive); }},
      {"CrossentropyOfLogits",
       [](OpCase& c) {
         WithLoss(
             c,
             LossOf("CategoricalCrossentropy", R"({"from_logits": true, "label_smoothing": 0.1})"),
             kNormal);
       }},
      {"CrossentropyOfProbabilities",
       [](OpCase& c) {
         WithLoss(c, LossOf("CategoricalCrossentropy", R"({"label_smoothing": 0.2})"), kPositive);
       }},
  };
}

}  // namespace shoal
