#include "worker/compute/cuda/runtime/captured_graph.h"

#include "common/base/status_macros.h"
#include "worker/compute/cuda/runtime/cuda_status.h"

namespace shoal::cuda {

absl::Status CapturedGraph::Begin(const Stream& stream) {
  return SHOAL_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
}

absl::StatusOr<CapturedGraph> CapturedGraph::End(const Stream& stream) {
  cudaGraph_t captured = nullptr;
  SHOAL_RETURN_IF_ERROR(SHOAL_CUDA(cudaStreamEndCapture(stream.get(), &captured)));
  cudaGraphExec_t executable = nullptr;
  const absl::Status status = SHOAL_CUDA(cudaGraphInstantiate(&executable, captured, 0));
  cudaGraphDestroy(captured);
  SHOAL_RETURN_IF_ERROR(status);
  return CapturedGraph(executable);
}

absl::Status CapturedGraph::Launch(const Stream& stream) const {
  return SHOAL_CUDA(cudaGraphLaunch(graph_.get(), stream.get()));
}

}  // namespace shoal::cuda
