#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/cudnn/convolution_graph.h"
#include "worker/compute/cuda/stream.h"

namespace shoal::cuda {

// Puts what computes a graph into a stream, with the graph's tensors_in_memory.
using ConvolutionRun = std::function<absl::Status(std::span<void* const> tensors, void* workspace)>;

// Seconds that `run` takes, on the current device, which is the stream's: the least of a few tries,
// with memory of its own. kResourceExhausted where there is none.
absl::StatusOr<double> MeasureConvolution(const Stream& stream, const ConvolutionGraph& graph,
                                          int64_t workspace_bytes, const ConvolutionRun& run);

}  // namespace shoal::cuda
