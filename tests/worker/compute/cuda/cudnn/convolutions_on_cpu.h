#pragma once

#include "worker/compute/cuda/ops/convolutions.h"

namespace shoal::cuda {

// Computes what a ConvolutionGraph says, on the calling thread, in float32: whether the right thing
// is asked of cuDNN shows without a GPU. Its kernels spoil the workspace that they ask for.
class ConvolutionsOnCpu : public Convolutions {
 public:
  absl::StatusOr<Made> Make(const ConvolutionGraph& graph, bool trains,
                            const NodeName& node) override;
  absl::StatusOr<std::string> Library() override { return "on CPU 1"; }
};

}  // namespace shoal::cuda
