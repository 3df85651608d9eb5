#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/runtime/stream.h"

namespace shoal::cuda {

// Work captured from a stream, ready to run repeatedly. Launching it costs the host as little as
// one kernel.
class CapturedGraph {
 public:
  // Begins to capture the work that this thread submits to the stream; it does not run. Work of
  // other threads is not affected.
  static absl::Status Begin(const Stream& stream);
  // Ends the capture. The stream is as before, also after an error.
  static absl::StatusOr<CapturedGraph> End(const Stream& stream);

  // Submits the graph to the stream.
  absl::Status Launch(const Stream& stream) const;

 private:
  struct Destroy {
    void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
  };
  explicit CapturedGraph(cudaGraphExec_t graph) : graph_(graph) {}

  std::unique_ptr<CUgraphExec_st, Destroy> graph_;
};

}  // namespace shoal::cuda
