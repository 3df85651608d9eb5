#include "worker/compute/cuda/tuning/run_timer.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/base/status_macros.h"
#include "worker/compute/cuda/kernels/with_element.h"
#include "worker/compute/cuda/runtime/captured_graph.h"
#include "worker/compute/cuda/runtime/cuda_status.h"
#include "worker/compute/cuda/runtime/memory.h"

namespace shoal::cuda {
namespace {

// Runs per graph. As in a step, they run in one graph, so that the host's launch cost does not
// count.
constexpr int kRunsOfGraph = 4;
// A try lasts long compared to the cost of a launch and an event.
constexpr double kSecondsOfTry = 1e-3;
constexpr int kMaxLaunches = 50;
constexpr int kTries = 3;
// Plans that take longer than this are run only once: they are not the fastest, or the time is
// precise enough.
constexpr double kLongSeconds = 20e-3;

constexpr int64_t kAlignmentBytes = 256;

int64_t AlignedBytes(int64_t size_bytes) {
  return (size_bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
}

// Fills the `index`-th tensor with TrialNumbers.
absl::Status Fill(const Stream& stream, const TrialTensor& tensor, size_t index, std::byte* to) {
  if (tensor.written) {  // with not-a-number, so that unwritten elements show
    return SHOAL_CUDA(cudaMemsetAsync(to, 0xff, tensor.size_bytes(), stream.get()));
  }
  std::vector<std::byte> block;
  WithElement(tensor.type, [&]<typename Element>(Element) {
    std::vector<Element> elements(std::min(tensor.elements, TrialNumbers(index)));
    for (size_t i = 0; i < elements.size(); ++i) {
      elements[i] = FromFloat<Element>(TrialNumber(index, static_cast<int64_t>(i)));
    }
    block.resize(elements.size() * sizeof(Element));
    std::memcpy(block.data(), elements.data(), block.size());
  });
  // The memory is not pinned, so the call returns only after reading it.
  SHOAL_RETURN_IF_ERROR(SHOAL_CUDA(
      cudaMemcpyAsync(to, block.data(), block.size(), cudaMemcpyHostToDevice, stream.get())));
  int64_t filled = static_cast<int64_t>(block.size());
  while (filled < tensor.size_bytes()) {
    const int64_t more = std::min(filled, tensor.size_bytes() - filled);
    SHOAL_RETURN_IF_ERROR(
        SHOAL_CUDA(cudaMemcpyAsync(to + filled, to, more, cudaMemcpyDeviceToDevice, stream.get())));
    filled += more;
  }
  return absl::OkStatus();
}

// Returns the elements at SamplePlaces; waits for the stream.
absl::StatusOr<std::vector<float>> SampleOf(const Stream& stream, const TrialTensor& tensor,
                                            const std::byte* from) {
  const auto [count, apart] = SamplePlaces(tensor.elements);
  std::vector<float> sample;
  absl::Status copied;
  WithElement(tensor.type, [&]<typename Element>(Element) {
    std::vector<Element> elements(count);
    copied = SHOAL_CUDA(cudaMemcpy2DAsync(elements.data(), sizeof(Element), from,
                                          apart * sizeof(Element), sizeof(Element), count,
                                          cudaMemcpyDeviceToHost, stream.get()));
    if (copied.ok()) copied = SHOAL_CUDA(cudaStreamSynchronize(stream.get()));
    for (const Element& element : elements) sample.push_back(ToFloat(element));
  });
  SHOAL_RETURN_IF_ERROR(copied);
  return sample;
}

using Run = std::function<absl::Status(std::span<void* const> addresses)>;

absl::StatusOr<CapturedGraph> Capture(const Stream& stream, const Run& run,
                                      std::span<void* const> addresses) {
  SHOAL_RETURN_IF_ERROR(CapturedGraph::Begin(stream));
  absl::Status put;
  for (int i = 0; i < kRunsOfGraph && put.ok(); ++i) put = run(addresses);
  absl::StatusOr<CapturedGraph> graph = CapturedGraph::End(stream);
  SHOAL_RETURN_IF_ERROR(put);
  return graph;
}

// Returns the seconds of one run, measured over `launches` launches in a row.
absl::StatusOr<double> TimeLaunches(const Stream& stream, const CapturedGraph& graph,
                                    int launches) {
  SHOAL_ASSIGN_OR_RETURN(Event begin, Event::Create(/*timed=*/true));
  SHOAL_ASSIGN_OR_RETURN(Event end, Event::Create(/*timed=*/true));
  SHOAL_RETURN_IF_ERROR(begin.Record(stream));
  for (int i = 0; i < launches; ++i) SHOAL_RETURN_IF_ERROR(graph.Launch(stream));
  SHOAL_RETURN_IF_ERROR(end.Record(stream));
  SHOAL_RETURN_IF_ERROR(end.Synchronize());
  SHOAL_ASSIGN_OR_RETURN(const double seconds, end.SecondsSince(begin));
  return seconds / launches / kRunsOfGraph;
}

}  // namespace

absl::StatusOr<AlgorithmTrial> TryRun(const Stream& stream, std::span<const TrialTensor> tensors,
                                      int64_t workspace_bytes, const Run& run) {
  int64_t all_bytes = AlignedBytes(workspace_bytes);
  for (const TrialTensor& tensor : tensors) all_bytes += AlignedBytes(tensor.size_bytes());
  SHOAL_ASSIGN_OR_RETURN(const DeviceMemory memory, DeviceMemory::Allocate(all_bytes));
  std::vector<void*> addresses;
  std::byte* next = memory.data();
  for (const TrialTensor& tensor : tensors) {
    SHOAL_RETURN_IF_ERROR(Fill(stream, tensor, addresses.size(), next));
    addresses.push_back(next);
    next += AlignedBytes(tensor.size_bytes());
  }
  addresses.push_back(next);
  // The first run may load code, which a capture does not allow.
  SHOAL_RETURN_IF_ERROR(run(addresses));
  AlgorithmTrial trial;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].written) continue;
    SHOAL_ASSIGN_OR_RETURN(
        trial.sample, SampleOf(stream, tensors[i], static_cast<const std::byte*>(addresses[i])));
    trial.tolerance = SampleTolerance(tensors[i].type);
  }
  SHOAL_ASSIGN_OR_RETURN(const CapturedGraph graph, Capture(stream, run, addresses));
  double& least = trial.time;
  SHOAL_ASSIGN_OR_RETURN(least, TimeLaunches(stream, graph, 1));
  if (least > kLongSeconds) return trial;
  const int launches = std::clamp(
      static_cast<int>(kSecondsOfTry / kRunsOfGraph / std::max(least, 1e-9)), 1, kMaxLaunches);
  for (int i = 0; i < kTries; ++i) {
    SHOAL_ASSIGN_OR_RETURN(const double seconds, TimeLaunches(stream, graph, launches));
    least = std::min(least, seconds);
  }
  return trial;
}

}  // namespace shoal::cuda
