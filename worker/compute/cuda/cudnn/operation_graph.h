#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/cudnn/convolution_graph.h"
#include "worker/compute/cuda/cudnn/cudnn_library.h"
#include "worker/compute/cuda/cudnn/descriptor.h"

namespace shoal::cuda {

// cuDNN's type of elements.
cudnnDataType_t DataType(ComputeDtype type);

// A ConvolutionGraph as finalized cuDNN descriptors. Owns them. Needs no GPU.
class OperationGraph {
 public:
  static absl::StatusOr<OperationGraph> Create(const CudnnLibrary& library,
                                               const ConvolutionGraph& graph, const NodeName& node);

  const Descriptor& descriptor() const { return parts_.back(); }

 private:
  explicit OperationGraph(std::vector<Descriptor> parts) : parts_(std::move(parts)) {}

  std::vector<Descriptor> parts_;  // tensors, operations, and last the graph
};

}  // namespace shoal::cuda
