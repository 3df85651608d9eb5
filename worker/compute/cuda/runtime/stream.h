#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "absl/status/statusor.h"

namespace shoal::cuda {

class Event;

// A queue of work on the current device, which runs in order. Owns it. The destructor does not
// wait: CUDA finishes the submitted work. Use it from one thread at a time.
class Stream {
 public:
  // Pending work of a stream with higher priority begins before that of one with lower priority.
  // Running work is not interrupted.
  enum class Priority { kDefault, kHighest };
  // Creates a stream that does not wait for the device's default stream.
  static absl::StatusOr<Stream> Create(Priority priority = Priority::kDefault);

  cudaStream_t get() const { return stream_.get(); }

  // Work submitted from now on waits until `event` is complete. Does not block. `captured`: the
  // stream is being captured into a graph, and each launch of the graph waits for the event, which
  // is outside the graph.
  absl::Status WaitFor(const Event& event, bool captured = false);
  // Blocks until all submitted work has run. Returns the error of that work, if any.
  absl::Status Synchronize();

 private:
  struct Destroy {
    void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
  };
  explicit Stream(cudaStream_t stream) : stream_(stream) {}

  std::unique_ptr<CUstream_st, Destroy> stream_;
};

// A point in a stream that other streams wait for, or that the host polls. Owns it.
class Event {
 public:
  // An event without a time is cheaper.
  static absl::StatusOr<Event> Create(bool timed = false);

  cudaEvent_t get() const { return event_.get(); }

  // Sets the point after all work in `stream` so far; `captured` is as for WaitFor.
  absl::Status Record(const Stream& stream, bool captured = false);
  // Whether the event is complete. Does not block. True for an event that was never recorded.
  absl::StatusOr<bool> IsComplete() const;
  // The device time between two timed events that are complete, in this order.
  absl::StatusOr<double> SecondsSince(const Event& earlier) const;
  // Blocks until the event is complete; keeps a core busy for the first 200 µs. Returns the error
  // of work before it, if any.
  absl::Status Synchronize() const;

 private:
  struct Destroy {
    void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
  };
  explicit Event(cudaEvent_t event) : event_(event) {}

  std::unique_ptr<CUevent_st, Destroy> event_;
};

}  // namespace shoal::cuda
