#pragma once

#include <vector>

#include "common/model/ops/activation.h"
#include "worker/compute/plan/plan.h"

namespace shoal {

// Nodes that are computed as a part of another node. By node index; -1: none.
struct Fusions {
  // The ReLU that a Conv2D, Dense, BatchNormalization or Add applies to its output.
  std::vector<int> relu;
  // The Add of two, the end of a residual block, that a BatchNormalization computes along: of its
  // output, which nothing else reads, and a value that is there by then. What `relu` has for the
  // Add goes with it.
  std::vector<int> residual_sum;
  // The BiasBackward that a Conv2DBackwardWeights computes along with the kernel's gradient.
  std::vector<int> bias_gradient;
  // The gradient of a ReLU that a max pooling's Pool2DBackward applies to the pooled gradient, a
  // fraction of the elements: the largest of a window is cut off exactly when the pooled value is.
  std::vector<int> relu_gradient;
  // The gradient of the ReLU after a normalization that a BatchNormalizationBackward applies to
  // what it reads.
  struct CutOff {
    int relu_gradient = -1;
    int normalization = -1;  // the BatchNormalization
  };
  std::vector<CutOff> cut_off;
  // The gradient of a ReLU at the end of a residual block that a BatchNormalizationBackward, the
  // first to read it, computes along: for itself and for those that read it later.
  std::vector<int> residual_gradient;
  // The Add of two that a BatchNormalizationBackward computes along, of a gradient that reaches a
  // value by two ways: what its `residual_gradient`, which alone reads it, cuts off or, where it
  // has none, the gradient of its output, for itself and for those that read it later.
  std::vector<int> gradient_sum;
  // The BiasBackward of what a BatchNormalizationBackward that is not frozen gives for x, and of
  // nothing else: zero, as a normalization by the batch's own mean takes off what was added to a
  // whole channel. Of dx = factor (dy - mean(dy) - (x - mean(x)) by_variance) the sum over the n
  // rows is factor (sum(dy) - n mean(dy) - by_variance (sum(x) - n mean(x))), so 0; what is summed
  // up instead is how dx was rounded.
  std::vector<int> zero_gradient;
  // Whether the node is computed by another.
  std::vector<bool> absorbed;
};

// Whether an activation is a ReLU whose derivative its result tells: y > 0, and below the maximum.
bool IsPlainRelu(const ActivationAttributes& attributes);

// What a backend has kernels for.
struct FusionChoice {
  // A ReLU's gradient that both a pooling and a normalization might apply is the pooling's, else
  // always the normalization's.
  bool poolings_take_gradients = true;
  // Fusions::residual_sum, residual_gradient and gradient_sum; else there are none.
  bool normalizations_take_sums = false;
  // Fusions::zero_gradient; else there are none.
  bool normalizations_take_zeros = false;
};

// The fusions among plan.nodes().
Fusions FindFusions(const Plan& plan, const FusionChoice& choice = {});

}  // namespace shoal
