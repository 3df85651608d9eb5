#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/stream.h"

namespace shoal::cuda {

// What was put into a stream while it was captured, ready to run again and again: that costs the
// host as little as one kernel.
class CapturedGraph {
 public:
  // From now on what this thread puts into the stream is captured, and does not run. What other
  // threads do meanwhile is their business.
  static absl::Status Begin(const Stream& stream);
  // Ends that, also where it fails: then the stream is as before.
  static absl::StatusOr<CapturedGraph> End(const Stream& stream);

  // Puts it into the stream.
  absl::Status Launch(const Stream& stream) const;

 private:
  struct Destroy {
    void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
  };
  explicit CapturedGraph(cudaGraphExec_t graph) : graph_(graph) {}

  std::unique_ptr<CUgraphExec_st, Destroy> graph_;
};

}  // namespace shoal::cuda
