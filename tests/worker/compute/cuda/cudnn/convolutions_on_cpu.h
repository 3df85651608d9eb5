#pragma once

#include "worker/compute/cuda/cudnn/convolutions.h"

namespace shoal::cuda {

// Computes a ConvolutionGraph on the calling thread, in float32. So tests without a GPU can check
// the graphs for cuDNN. The kernels overwrite their workspace with garbage.
class ConvolutionsOnCpu : public Convolutions {
 public:
  absl::StatusOr<Made> Make(const ConvolutionGraph& graph, bool trains,
                            const NodeName& node) override;
  absl::StatusOr<std::string> Library() override { return "on CPU 1"; }
};

}  // namespace shoal::cuda
