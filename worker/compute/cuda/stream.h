#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "absl/status/statusor.h"

namespace shoal::cuda {

class Event;

// A queue of work on the current device, which runs in order. Owns it; who destroys it waits for
// nothing: CUDA finishes what is in it. To be used by one thread at a time.
class Stream {
 public:
  // Before work that is in streams of a lower one begins, that of a higher one does: what runs
  // already is not stopped.
  enum class Priority { kDefault, kHighest };
  // One that does not wait for the device's default stream.
  static absl::StatusOr<Stream> Create(Priority priority = Priority::kDefault);

  cudaStream_t get() const { return stream_.get(); }

  // What is put in from now on waits until `event` has happened. Does not block. `captured`: the
  // stream is being captured into a graph, and the event is one outside of it, each time that the
  // graph is launched.
  absl::Status WaitFor(const Event& event, bool captured = false);
  // Blocks until all that was put in has run. Says what went wrong in it.
  absl::Status Synchronize();

 private:
  struct Destroy {
    void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
  };
  explicit Stream(cudaStream_t stream) : stream_(stream) {}

  std::unique_ptr<CUstream_st, Destroy> stream_;
};

// A point in a stream that others wait for or that the host asks after. Owns it.
class Event {
 public:
  // One without a time of its own costs less.
  static absl::StatusOr<Event> Create(bool timed = false);

  cudaEvent_t get() const { return event_.get(); }

  // The point is after all that is in `stream` now; `captured` as of WaitFor.
  absl::Status Record(const Stream& stream, bool captured = false);
  // Whether it has been reached. Does not block; one that was never recorded has.
  absl::StatusOr<bool> Happened() const;
  // Of two that are timed and have been reached, one after the other: what the device took between.
  absl::StatusOr<double> SecondsSince(const Event& earlier) const;
  // Blocks until it has been reached; keeps a core busy for the first 200 µs. Says what went wrong
  // before it.
  absl::Status Synchronize() const;

 private:
  struct Destroy {
    void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
  };
  explicit Event(cudaEvent_t event) : event_(event) {}

  std::unique_ptr<CUevent_st, Destroy> event_;
};

}  // namespace shoal::cuda
