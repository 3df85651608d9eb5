#pragma once

#include <optional>

#include "common/model/op.h"
#include "common/model/ops/add.h"
#include "common/model/ops/batch_normalization.h"
#include "common/model/ops/conv2d.h"
#include "common/model/ops/dense.h"
#include "common/model/ops/depthwise_conv2d.h"
#include "common/model/ops/pool2d.h"

// Ops that compute what several ops of a model compute. A pass puts them into a plan where a
// backend supports them (passes/passes.h). No model has them, and they have no gradient.

namespace shoal {

// The part of each fused op that tells what it is.
class FusedOp {
 public:
  // The type of the model's op that it extends: "Conv2D".
  virtual const char* extended_type() const = 0;

 protected:
  ~FusedOp() = default;
};
// A fused op that is a Base with more.
template <typename Base>
struct Extended : Base, FusedOp {
  explicit Extended(const Base& op) : Base(op) {}
  const char* extended_type() const override { return Base::type(); }
};
// The type of an op in a model, for people. A fused op has the type that it extends.
inline const char* ModelTypeOf(const Op& op) {
  const auto* fused = dynamic_cast<const FusedOp*>(&op);
  return fused == nullptr ? op.type() : fused->extended_type();
}

// A plain ReLU (IsPlainRelu) as a part of another op.
struct FusedRelu {
  double max_value = -1;  // < 0: none
};

// An op that ends with a ReLU of its first output.
struct EndsWithRelu {
  FusedRelu relu;

 protected:
  ~EndsWithRelu() = default;
};
// The ReLU that `op` ends with; null: none.
inline const FusedRelu* FindFusedRelu(const Op& op) {
  const auto* ends = dynamic_cast<const EndsWithRelu*>(&op);
  return ends == nullptr ? nullptr : &ends->relu;
}

// Declares a fused op's members. NAME is its type.
#define SHOAL_FUSED_OP(NAME, BASE)                    \
  explicit NAME##Op(const BASE& op) : Extended(op) {} \
  const char* type() const override { return #NAME; }

struct Conv2DReluOp : Extended<Conv2DOp>, EndsWithRelu {
  SHOAL_FUSED_OP(Conv2DRelu, Conv2DOp)
};
struct DepthwiseConv2DReluOp : Extended<DepthwiseConv2DOp>, EndsWithRelu {
  SHOAL_FUSED_OP(DepthwiseConv2DRelu, DepthwiseConv2DOp)
};

// A convolution with the BatchNormalization behind it, in inference. Its inputs are x, kernel, the
// optional bias, mean, variance, and the optional gamma and beta. Fixed statistics make a
// normalization linear, so the convolution scales its kernel and moves its bias instead.
struct FoldedNormalization {
  bool has_bias = false;
  BatchNormalizationOp normalization;

  // The indices of the inputs; -1: not there.
  int bias() const { return has_bias ? 2 : -1; }
  int mean() const { return 2 + has_bias; }
  int variance() const { return mean() + 1; }
  int gamma() const { return normalization.scale ? mean() + 2 : -1; }
  int beta() const { return normalization.center ? mean() + 2 + normalization.scale : -1; }

 protected:
  ~FoldedNormalization() = default;
};
struct Conv2DNormalizationOp : Extended<Conv2DOp>, FoldedNormalization {
  SHOAL_FUSED_OP(Conv2DNormalization, Conv2DOp)
};
struct Conv2DNormalizationReluOp : Conv2DNormalizationOp, EndsWithRelu {
  explicit Conv2DNormalizationReluOp(const Conv2DNormalizationOp& op) : Conv2DNormalizationOp(op) {}
  const char* type() const override { return "Conv2DNormalizationRelu"; }
};
struct DepthwiseConv2DNormalizationOp : Extended<DepthwiseConv2DOp>, FoldedNormalization {
  SHOAL_FUSED_OP(DepthwiseConv2DNormalization, DepthwiseConv2DOp)
};
struct DepthwiseConv2DNormalizationReluOp : DepthwiseConv2DNormalizationOp, EndsWithRelu {
  explicit DepthwiseConv2DNormalizationReluOp(const DepthwiseConv2DNormalizationOp& op)
      : DepthwiseConv2DNormalizationOp(op) {}
  const char* type() const override { return "DepthwiseConv2DNormalizationRelu"; }
};

struct DenseReluOp : Extended<DenseOp>, EndsWithRelu {
  SHOAL_FUSED_OP(DenseRelu, DenseOp)
};
struct AddReluOp : Extended<AddOp>, EndsWithRelu {
  SHOAL_FUSED_OP(AddRelu, AddOp)
};
struct BatchNormalizationReluOp : Extended<BatchNormalizationOp>, EndsWithRelu {
  SHOAL_FUSED_OP(BatchNormalizationRelu, BatchNormalizationOp)
};

// The end of a residual block, without and with its ReLU: the last input is added to y.
struct BatchNormalizationAddOp : Extended<BatchNormalizationOp> {
  SHOAL_FUSED_OP(BatchNormalizationAdd, BatchNormalizationOp)
};
struct BatchNormalizationAddReluOp : BatchNormalizationAddOp, EndsWithRelu {
  explicit BatchNormalizationAddReluOp(const BatchNormalizationAddOp& op)
      : BatchNormalizationAddOp(op) {}
  const char* type() const override { return "BatchNormalizationAddRelu"; }
};

// (x, dy) -> dkernel, dbias: the gradients of a convolution's variables.
struct Conv2DBackwardVariablesOp : Extended<Conv2DBackwardWeightsOp> {
  SHOAL_FUSED_OP(Conv2DBackwardVariables, Conv2DBackwardWeightsOp)
};
struct DepthwiseConv2DBackwardVariablesOp : Extended<DepthwiseConv2DBackwardWeightsOp> {
  SHOAL_FUSED_OP(DepthwiseConv2DBackwardVariables, DepthwiseConv2DBackwardWeightsOp)
};

// (x, y, dy) -> the gradient of the input of the ReLU that computes x.
struct MaxPool2DBackwardReluOp : Extended<Pool2DBackwardOp> {
  FusedRelu relu;
  SHOAL_FUSED_OP(MaxPool2DBackwardRelu, Pool2DBackwardOp)
};

// (x, dy, mean, variance, then those inputs that there are: gamma, beta, result, summand)
//   -> dx, dgamma, dbeta, then those outputs that there are: total, dbias.
//
// The gradient of a normalization's output is (dy + summand), cut off where `relu` did: where its
// `result` is not between the bounds, or else, without a `result`, where the normalization's output
// is not. It is written to `total` for other readers if there is a `summand` or a `result`.
struct BatchNormalizationBackwardFusedOp : Extended<BatchNormalizationBackwardOp> {
  std::optional<FusedRelu> relu;
  bool center = false;  // `beta` is there, to compute the normalization's output
  bool has_result = false;
  bool has_summand = false;
  // The gradient of a bias that is added to x, and to nothing else. It is zero, because
  // normalization by the batch's own mean removes any constant added to a channel. For dx = factor
  // (dy - mean(dy) - (x - mean(x)) by_variance) the sum over the n rows is factor (sum(dy) - n
  // mean(dy) - by_variance (sum(x) - n mean(x))) = 0. Computing the sum would only add up the
  // rounding errors of dx.
  bool has_dbias = false;
  SHOAL_FUSED_OP(BatchNormalizationBackwardFused, BatchNormalizationBackwardOp)

  bool has_total() const { return has_result || has_summand; }
  // The indices of the optional inputs and outputs; -1: not there.
  int gamma() const { return scale ? 4 : -1; }
  int beta() const { return center ? 4 + scale : -1; }
  int result() const { return has_result ? 4 + scale + center : -1; }
  int summand() const { return has_summand ? 4 + scale + center + has_result : -1; }
  int total() const { return has_total() ? 3 : -1; }
  int dbias() const { return has_dbias ? 3 + has_total() : -1; }
};
// `op` as a fused op: without fused parts if it is none.
inline BatchNormalizationBackwardFusedOp AsFused(const BatchNormalizationBackwardOp& op) {
  const auto* fused = dynamic_cast<const BatchNormalizationBackwardFusedOp*>(&op);
  return fused == nullptr ? BatchNormalizationBackwardFusedOp(op) : *fused;
}

}  // namespace shoal
