#pragma once

#include <vector>

#include "common/model/ops/activation.h"
#include "worker/compute/plan/plan.h"

namespace shoal {

// Nodes that are computed as a part of another node. By node index; -1: none.
struct Fusions {
  // The ReLU that a Conv2D, Dense, BatchNormalization or Add applies to its output.
  std::vector<int> relu;
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
  // Whether the node is computed by another.
  std::vector<bool> absorbed;
};

// Whether an activation is a ReLU whose derivative its result tells: y > 0, and below the maximum.
bool IsPlainRelu(const ActivationAttributes& attributes);

// The fusions among plan.nodes(). A ReLU's gradient that both a pooling and a normalization might
// apply is the pooling's, or with `poolings_take_gradients` false always the normalization's.
Fusions FindFusions(const Plan& plan, bool poolings_take_gradients = true);

}  // namespace shoal
