#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/cudnn/convolution_graph.h"
#include "worker/compute/cuda/node_name.h"
#include "worker/compute/program.h"

namespace shoal::cuda {

// What computes convolutions on a device. Outlives the kernels that it makes. Not thread-safe.
class Convolutions {
 public:
  struct Made {
    // Of the tensors graph.tensors_in_memory(), in that order, then a workspace.
    std::unique_ptr<Kernel> kernel;
    // Of the workspace; what it held is lost.
    int64_t workspace_bytes = 0;
  };

  virtual ~Convolutions() = default;

  // kUnimplemented for what it does not compute. `trains`: of a step that is to run
  // (Plan::may_measure); what is of an evaluation or a prediction has the same bits whenever it is
  // computed. `node`: for errors.
  virtual absl::StatusOr<Made> Make(const ConvolutionGraph& graph, bool trains,
                                    const NodeName& node) = 0;
  // What computes them, with its version: "cuDNN 9.19.0". An error where it is not to be had.
  virtual absl::StatusOr<std::string> Library() = 0;
};

}  // namespace shoal::cuda
