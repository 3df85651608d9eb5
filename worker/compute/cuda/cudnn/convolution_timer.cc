#include "worker/compute/cuda/cudnn/convolution_timer.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "common/base/status_macros.h"
#include "worker/compute/cuda/cuda_status.h"
#include "worker/compute/cuda/memory.h"

namespace shoal::cuda {
namespace {

// Runs are put into the stream together, so that the host's part of them is hidden.
constexpr int kTries = 3;
constexpr int kRunsOfTry = 4;

constexpr int64_t kAlignmentBytes = 256;

int64_t SizeBytes(const GraphTensor& tensor) {
  const int64_t size_bytes = tensor.elements() * (tensor.type == ComputeDtype::kFloat32 ? 4 : 2);
  return (size_bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
}

}  // namespace

absl::StatusOr<double> MeasureConvolution(const Stream& stream, const ConvolutionGraph& graph,
                                          int64_t workspace_bytes, const ConvolutionRun& run) {
  const std::vector<GraphTensor> tensors = graph.tensors_in_memory();
  int64_t size_bytes = workspace_bytes;
  for (const GraphTensor& tensor : tensors) size_bytes += SizeBytes(tensor);
  SHOAL_ASSIGN_OR_RETURN(const DeviceMemory memory, DeviceMemory::Allocate(size_bytes));
  SHOAL_RETURN_IF_ERROR(
      SHOAL_CUDA(cudaMemsetAsync(memory.data(), 0, memory.size_bytes(), stream.get())));
  std::vector<void*> addresses;
  std::byte* next = memory.data();
  for (const GraphTensor& tensor : tensors) {
    addresses.push_back(next);
    next += SizeBytes(tensor);
  }
  // The first run may have to load what it runs.
  SHOAL_RETURN_IF_ERROR(run(addresses, next));
  SHOAL_RETURN_IF_ERROR(SHOAL_CUDA(cudaStreamSynchronize(stream.get())));
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kTries; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    for (int j = 0; j < kRunsOfTry; ++j) SHOAL_RETURN_IF_ERROR(run(addresses, next));
    SHOAL_RETURN_IF_ERROR(SHOAL_CUDA(cudaStreamSynchronize(stream.get())));
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    least = std::min(least, taken.count() / kRunsOfTry);
  }
  return least;
}

}  // namespace shoal::cuda
