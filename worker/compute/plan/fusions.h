#pragma once

#include <vector>

#include "common/model/ops/activation.h"
#include "worker/compute/plan/plan.h"

namespace shoal {

// Nodes that a kernel computes as a part of another node. By node index; -1: none.
struct Fusions {
  // The ReLU that a Conv2D, Dense, BatchNormalization or Add applies to its output.
  std::vector<int> relu;
  // Residual Add fused into the preceding BatchNormalization: the Add of two at the end of a
  // residual block. Its operands are the normalization's output, which has no other reader, and a
  // value that is computed by then. The ReLU in `relu` of the Add is fused, too.
  std::vector<int> residual_sum;
  // The BiasBackward that a Conv2DBackwardWeights computes along with the gradient of the kernel.
  std::vector<int> bias_gradient;
  // The gradient of a ReLU that a max pooling's Pool2DBackward applies to the pooled gradient,
  // which has a fraction of the elements. The ReLU cuts off the largest element of a window exactly
  // when it cuts off the pooled value.
  std::vector<int> relu_gradient;
  // The gradient of the ReLU after a normalization that a BatchNormalizationBackward applies to its
  // input gradient.
  struct CutOff {
    int relu_gradient = -1;
    int normalization = -1;  // the BatchNormalization
  };
  std::vector<CutOff> cut_off;
  // The gradient of a ReLU at the end of a residual block that a BatchNormalizationBackward
  // computes along, for itself and for later readers. It is the first reader.
  std::vector<int> residual_gradient;
  // The Add of two that a BatchNormalizationBackward computes along: the gradient of a value that
  // is used in two ways. With a `residual_gradient`, which must be the only reader, the sum is the
  // input of that gradient. Otherwise the sum is the gradient of the normalization's output, for
  // itself and for later readers.
  std::vector<int> gradient_sum;
  // The BiasBackward of the x gradient of a BatchNormalizationBackward that is not frozen, and of
  // nothing else. The result is zero, because normalization by the batch's own mean removes any
  // constant added to a channel. For dx = factor (dy - mean(dy) - (x - mean(x)) by_variance) the
  // sum over the n rows is factor (sum(dy) - n mean(dy) - by_variance (sum(x) - n mean(x))) = 0.
  // Computing the sum would only add up the rounding errors of dx.
  std::vector<int> zero_gradient;
  // Whether another node computes this one.
  std::vector<bool> absorbed;
};

// Whether an activation is a ReLU whose derivative follows from its result: 0 < y, and y below the
// maximum.
bool IsPlainRelu(const ActivationAttributes& attributes);

// The fusions that a backend has kernels for.
struct FusionChoice {
  // If both a pooling and a normalization could apply a ReLU's gradient, the pooling does.
  // Otherwise the normalization does.
  bool poolings_take_gradients = true;
  // Finds Fusions::residual_sum, residual_gradient and gradient_sum.
  bool normalizations_take_sums = false;
  // Finds Fusions::zero_gradient.
  bool normalizations_take_zeros = false;
};

// The fusions among plan.nodes().
Fusions FindFusions(const Plan& plan, const FusionChoice& choice = {});

}  // namespace shoal
