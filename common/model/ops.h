#pragma once

#include <array>
#include <string>
#include <vector>

#include "common/model/graph.h"

// Every op of the engine: attributes, and in the comment its inputs -> outputs. Images are NHWC,
// convolution kernels HWIO (Keras's own layouts). Shape inference and gradient rules: ops/NAME.cc.
// Gradient ops carry the shape they must produce where it does not follow from their inputs; its
// leading kBatch stands for the batch.

namespace shoal {

enum class Padding { kValid, kSame };

// Keras 3's activations, but softmax; gelu is the exact one. relu: max_value < 0 means none.
struct ActivationAttributes {
  enum class Kind {
    kRelu,
    kTanh,
    kSigmoid,
    kElu,
    kSelu,
    kSoftplus,
    kSoftsign,
    kSilu,
    kGelu,
    kExponential,
    kLeakyRelu,
    kHardSigmoid
  };
  Kind kind = Kind::kRelu;
  double max_value = -1;      // relu
  double negative_slope = 0;  // relu, leaky relu; alpha of elu
  double threshold = 0;       // relu
};

// A window sliding over two spatial axes. Keras's SAME: out = ceil(in / stride),
// total = max((out - 1) * stride + (k - 1) * dilation + 1 - in, 0), before = total / 2.
struct Window {
  std::array<int64_t, 2> size = {1, 1};
  std::array<int64_t, 2> strides = {1, 1};
  std::array<int64_t, 2> dilation = {1, 1};
  Padding padding = Padding::kValid;

  // Extent of the output along spatial axis `axis` for an input of `in`; <= 0 when the window does
  // not fit.
  int64_t OutputExtent(int axis, int64_t in) const;
  // Zeros before the first element along `axis`.
  int64_t PaddingBefore(int axis, int64_t in) const;
  // [B, H, W, C] -> [B, H', W', C]; an error when the window does not fit.
  absl::StatusOr<Shape> OutputShape(const Shape& image) const;
};

#define SHOAL_OP(NAME)                                \
  const char* type() const override { return #NAME; } \
  absl::StatusOr<std::vector<Shape>> InferShapes(const std::vector<Shape>& inputs) const override

// --- Dense ---

// (x [..., K], kernel [K, N], bias [N] optional) -> [..., N]
struct DenseOp : Op {
  SHOAL_OP(Dense);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (dy [..., N], kernel [K, N]) -> dx [..., K]
struct DenseBackwardDataOp : Op {
  SHOAL_OP(DenseBackwardData);
};
// (x [..., K], dy [..., N]) -> dkernel [K, N]
struct DenseBackwardWeightsOp : Op {
  SHOAL_OP(DenseBackwardWeights);
};
// (dy [..., N]) -> dbias [N], the sum over all other axes
struct BiasBackwardOp : Op {
  SHOAL_OP(BiasBackward);
};

// --- Conv2D ---

// (x [B, H, W, C], kernel [kh, kw, C / groups, F], bias [F] optional) -> [B, H', W', F].
// window.size is that of the kernel.
struct Conv2DOp : Op {
  Window window;
  int64_t groups = 1;
  SHOAL_OP(Conv2D);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (dy, kernel) -> dx
struct Conv2DBackwardDataOp : Op {
  Window window;
  int64_t groups = 1;
  Shape x_shape;
  SHOAL_OP(Conv2DBackwardData);
};
// (x, dy) -> dkernel
struct Conv2DBackwardWeightsOp : Op {
  Window window;
  int64_t groups = 1;
  Shape kernel_shape;
  SHOAL_OP(Conv2DBackwardWeights);
};

// --- Pooling ---

// (x [B, H, W, C]) -> [B, H', W', C]. The average counts only elements inside the image.
struct Pool2DOp : Op {
  enum class Kind { kMax, kAverage };
  Kind kind = Kind::kMax;
  Window window;
  SHOAL_OP(Pool2D);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (x, y, dy) -> dx. Max: the first of equal maxima in row-major order gets all.
struct Pool2DBackwardOp : Op {
  Pool2DOp::Kind kind = Pool2DOp::Kind::kMax;
  Window window;
  SHOAL_OP(Pool2DBackward);
};
// (x [B, H, W, C]) -> [B, C], or [B, 1, 1, C] with keep_dims
struct GlobalAveragePool2DOp : Op {
  bool keep_dims = false;
  SHOAL_OP(GlobalAveragePool2D);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (dy) -> dx
struct GlobalAveragePool2DBackwardOp : Op {
  Shape x_shape;
  SHOAL_OP(GlobalAveragePool2DBackward);
};

// --- Elementwise and shape ---

// (x) -> the same elements as `shape`, whose first extent is kBatch.
struct ReshapeOp : Op {
  Shape shape;
  SHOAL_OP(Reshape);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (x) -> x in inference; in training, each element of an example is kept with probability 1 - rate
// and scaled by 1 / (1 - rate). The mask is a pure function of (job seed, step, layer_seed,
// position in the batch), so that a step computed twice is the same.
struct DropoutOp : Op {
  double rate = 0;
  uint64_t layer_seed = 0;
  SHOAL_OP(Dropout);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (dy) -> dx, by the mask of the forward op
struct DropoutBackwardOp : Op {
  double rate = 0;
  uint64_t layer_seed = 0;
  SHOAL_OP(DropoutBackward);
};
// (x) -> f(x)
struct ActivationOp : Op {
  ActivationAttributes attributes;
  SHOAL_OP(Activation);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (x, y, dy) -> dx
struct ActivationBackwardOp : Op {
  ActivationAttributes attributes;
  SHOAL_OP(ActivationBackward);
};
// (x) -> softmax along the last axis
struct SoftmaxOp : Op {
  SHOAL_OP(Softmax);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (y, dy) -> dx
struct SoftmaxBackwardOp : Op {
  SHOAL_OP(SoftmaxBackward);
};
// (x) -> x * scale + offset; one value each, or one per channel (last axis)
struct RescaleOp : Op {
  std::vector<double> scale = {1};
  std::vector<double> offset = {0};
  SHOAL_OP(Rescale);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (x1, x2, ...) of one shape -> sum
struct AddOp : Op {
  SHOAL_OP(Add);
  absl::Status Gradient(GradientBuilder& builder) const override;
};

// --- Losses ---

struct LossAttributes {
  enum class Kind { kSparseCategoricalCrossentropy, kCategoricalCrossentropy, kMeanSquaredError };
  Kind kind = Kind::kMeanSquaredError;
  bool from_logits = false;
  double label_smoothing = 0;  // categorical only
};
// (prediction, target) -> loss of each example [B], averaged over inner axes as Keras does.
// Probabilities (from_logits false) are normalised and clipped to [1e-7, 1 - 1e-7].
struct LossOp : Op {
  LossAttributes attributes;
  SHOAL_OP(Loss);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (prediction, target) -> d(mean over the batch of the loss) / d(prediction)
struct LossBackwardOp : Op {
  LossAttributes attributes;
  SHOAL_OP(LossBackward);
};

// Shape of the target that goes with predictions of shape `prediction`: the same, or without the
// axis of classes where the target is the class's number.
absl::StatusOr<Shape> TargetShape(const LossAttributes& loss, const Shape& prediction);

#undef SHOAL_OP

// Adds `loss` of the graph's one output to a copy of `model`, then the static reverse pass, nodes
// in an order in which the gradients of the last layers come first. A cross-entropy on
// probabilities whose prediction is the output of a Softmax node is taken from the logits instead
// (exact and stable). Values used by several nodes get the sum of their gradients.
absl::StatusOr<TrainingGraph> BuildTrainingGraph(const Graph& model, const LossAttributes& loss);

}  // namespace shoal
