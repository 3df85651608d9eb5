#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/cudnn/convolution_graph.h"
#include "worker/compute/cuda/runtime/node_name.h"
#include "worker/compute/program/program.h"

namespace shoal::cuda {

// Makes kernels for convolutions on a device. Must outlive them. Not thread-safe.
class Convolutions {
 public:
  struct Made {
    // Takes the tensors graph.tensors_in_memory(), in that order, then a workspace.
    std::unique_ptr<Kernel> kernel;
    // Size of the workspace, whose contents are lost.
    int64_t workspace_bytes = 0;
  };

  virtual ~Convolutions() = default;

  // kUnimplemented for unsupported convolutions. `trains`: for a training step that will run
  // (Plan::may_measure). Kernels for evaluation or prediction give the same bits every time. `node`
  // is for errors.
  virtual absl::StatusOr<Made> Make(const ConvolutionGraph& graph, bool trains,
                                    const NodeName& node) = 0;
  // The library with its version: "cuDNN 9.19.0". An error if it is not available.
  virtual absl::StatusOr<std::string> Library() = 0;
};

}  // namespace shoal::cuda
