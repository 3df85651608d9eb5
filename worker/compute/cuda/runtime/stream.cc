#include "worker/compute/cuda/runtime/stream.h"

#include <chrono>
#include <thread>

#include "common/base/status_macros.h"
#include "worker/compute/cuda/runtime/cuda_status.h"

namespace shoal::cuda {
namespace {

// How long the host polls an event before the thread sleeps. The driver takes tens of microseconds
// to wake a thread, and hundreds in a virtual machine. That is as long as a whole step of a small
// model. For a large model the waits for all gradients add up to some milliseconds of a step's
// thirty.
constexpr std::chrono::microseconds kAsks{200};

}  // namespace

absl::StatusOr<Stream> Stream::Create(Priority priority) {
  cudaStream_t stream = nullptr;
  // The default priority is the lowest, 0; higher priorities are lower numbers.
  int lowest = 0, highest = 0;
  SHOAL_RETURN_IF_ERROR(SHOAL_CUDA(cudaDeviceGetStreamPriorityRange(&lowest, &highest)));
  SHOAL_RETURN_IF_ERROR(SHOAL_CUDA(cudaStreamCreateWithPriority(
      &stream, cudaStreamNonBlocking, priority == Priority::kHighest ? highest : lowest)));
  return Stream(stream);
}

absl::Status Stream::WaitFor(const Event& event, bool captured) {
  return SHOAL_CUDA(cudaStreamWaitEvent(get(), event.get(),
                                        captured ? cudaEventWaitExternal : cudaEventWaitDefault));
}

absl::Status Stream::Synchronize() { return SHOAL_CUDA(cudaStreamSynchronize(get())); }

absl::StatusOr<Event> Event::Create(bool timed) {
  cudaEvent_t event = nullptr;
  const unsigned flags = cudaEventBlockingSync | (timed ? 0 : cudaEventDisableTiming);
  SHOAL_RETURN_IF_ERROR(SHOAL_CUDA(cudaEventCreateWithFlags(&event, flags)));
  return Event(event);
}

absl::Status Event::Record(const Stream& stream, bool captured) {
  return SHOAL_CUDA(cudaEventRecordWithFlags(
      get(), stream.get(), captured ? cudaEventRecordExternal : cudaEventRecordDefault));
}

absl::StatusOr<bool> Event::IsComplete() const {
  const cudaError_t state = cudaEventQuery(get());
  if (state == cudaErrorNotReady) return false;
  SHOAL_RETURN_IF_ERROR(ToStatus(state, "cudaEventQuery"));
  return true;
}

absl::StatusOr<double> Event::SecondsSince(const Event& earlier) const {
  float milliseconds = 0;
  SHOAL_RETURN_IF_ERROR(SHOAL_CUDA(cudaEventElapsedTime(&milliseconds, earlier.get(), get())));
  return milliseconds / 1e3;
}

absl::Status Event::Synchronize() const {
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < kAsks) {
    SHOAL_ASSIGN_OR_RETURN(const bool complete, IsComplete());
    if (complete) return absl::OkStatus();
    std::this_thread::yield();
  }
  return SHOAL_CUDA(cudaEventSynchronize(get()));
}

}  // namespace shoal::cuda
