#include "worker/compute/cuda/run_timer.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <vector>

#include "common/base/status_macros.h"
#include "worker/compute/cuda/captured_graph.h"
#include "worker/compute/cuda/cuda_status.h"
#include "worker/compute/cuda/memory.h"

namespace shoal::cuda {
namespace {

// Of one graph, as a step's are: what a launch costs the host does not count.
constexpr int kRunsOfGraph = 4;
// A try lasts long beside what a launch and an event cost.
constexpr double kSecondsOfTry = 1e-3;
constexpr int kMostLaunches = 50;
constexpr int kTries = 3;
// What takes longer than that is not the fastest, or is as it is.
constexpr double kLongSeconds = 20e-3;

constexpr int64_t kAlignmentBytes = 256;

int64_t AlignedBytes(int64_t size_bytes) {
  return (size_bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
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

// Seconds of one run, in so many launches one after the other.
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

absl::StatusOr<double> MeasureRun(const Stream& stream, std::span<const int64_t> sizes_bytes,
                                  const Run& run) {
  int64_t all_bytes = 0;
  for (const int64_t size_bytes : sizes_bytes) all_bytes += AlignedBytes(size_bytes);
  SHOAL_ASSIGN_OR_RETURN(const DeviceMemory memory, DeviceMemory::Allocate(all_bytes));
  SHOAL_RETURN_IF_ERROR(
      SHOAL_CUDA(cudaMemsetAsync(memory.data(), 0, memory.size_bytes(), stream.get())));
  std::vector<void*> addresses;
  std::byte* next = memory.data();
  for (const int64_t size_bytes : sizes_bytes) {
    addresses.push_back(next);
    next += AlignedBytes(size_bytes);
  }
  // It may have to load what it runs, which a capture does not allow.
  SHOAL_RETURN_IF_ERROR(run(addresses));
  SHOAL_RETURN_IF_ERROR(SHOAL_CUDA(cudaStreamSynchronize(stream.get())));
  SHOAL_ASSIGN_OR_RETURN(const CapturedGraph graph, Capture(stream, run, addresses));
  SHOAL_ASSIGN_OR_RETURN(double least, TimeLaunches(stream, graph, 1));
  if (least > kLongSeconds) return least;
  const int launches = std::clamp(
      static_cast<int>(kSecondsOfTry / kRunsOfGraph / std::max(least, 1e-9)), 1, kMostLaunches);
  for (int i = 0; i < kTries; ++i) {
    SHOAL_ASSIGN_OR_RETURN(const double seconds, TimeLaunches(stream, graph, launches));
    least = std::min(least, seconds);
  }
  return least;
}

}  // namespace shoal::cuda
