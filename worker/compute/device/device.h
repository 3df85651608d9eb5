#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/program/pinned_buffer.h"
#include "worker/compute/program/program.h"

namespace shoal {

// A device with its own memory, as DeviceExecutable drives it. It runs in parallel with the host:
// calls submit work to a stream and return before the work is done. Work in a stream begins after
// all earlier work of that stream has ended. Streams wait for each other only through events. Not
// thread-safe.
class Device {
 public:
  enum class Stream {
    kIn,       // copies from the host
    kCompute,  // kernels
    kOut,      // copies to the host
  };
  // A piece of memory, freed by the destructor. The device must outlive it.
  class Memory {
   public:
    virtual ~Memory() = default;
    virtual char* data() const = 0;
  };
  // A point in a stream, made once and recorded anew in each run. The device must outlive it.
  class Event {
   public:
    virtual ~Event() = default;
  };

  // Work submitted to kCompute, recorded to be submitted again as one piece.
  class Recording {
   public:
    virtual ~Recording() = default;
  };

  virtual ~Device() = default;

  // Makes the calling thread ready to use the device. Call it if another thread used the device
  // last.
  virtual void UseOnThisThread() {}

  // kResourceExhausted if there is too little memory.
  virtual absl::StatusOr<std::unique_ptr<Memory>> Allocate(int64_t size_bytes) = 0;
  // The free bytes of that memory.
  virtual absl::StatusOr<int64_t> FreeBytes() = 0;
  // Allocates pinned memory of the host: copies from and to it run in parallel with the host.
  // Scarce.
  virtual absl::StatusOr<std::unique_ptr<Memory>> AllocateHost(int64_t size_bytes) = 0;
  // Pins the caller's memory as long as the result is held. Release the result before freeing the
  // memory. Otherwise the pages stay the device's, and the system may reuse them at another
  // address.
  virtual absl::StatusOr<std::unique_ptr<PinnedBuffer>> Pin(void* memory, int64_t size_bytes) = 0;
  // Makes an event without a time.
  virtual absl::StatusOr<std::unique_ptr<Event>> NewEvent() = 0;
  // An event of kCompute that also records the time at which it happens.
  virtual absl::StatusOr<std::unique_ptr<Event>> NewTimedEvent() = 0;

  // Copies on kIn and kOut. The host's memory must stay valid until the copy has ended. If the
  // memory is not pinned, the call may return only after the copy, and so all earlier work in its
  // stream, has run.
  virtual absl::Status CopyIn(const void* from, char* to, int64_t size_bytes) = 0;
  virtual absl::Status CopyOut(const char* from, void* to, int64_t size_bytes) = 0;
  // Submits a kernel to kCompute. `context` and `tensors` are in the device's memory. The call
  // reads the span before it returns.
  virtual absl::Status Launch(Kernel& kernel, const RunContext* context,
                              std::span<void* const> tensors) = 0;

  // `event` completes after all work submitted to `stream` so far.
  virtual absl::Status Record(Stream stream, Event& event) = 0;
  // Work submitted to `stream` from now on begins after `event` completes.
  virtual absl::Status Wait(Stream stream, Event& event) = 0;
  // Between these two calls, work submitted to kCompute is recorded and does not run: kernels with
  // their addresses, and event operations as such, so that each replay refers to the event anew.
  // Kernels must have run once before. If BeginRecording fails, nothing is recorded; kUnimplemented
  // if the device cannot record.
  virtual absl::Status BeginRecording() {
    return absl::UnimplementedError("this device records nothing");
  }
  virtual absl::StatusOr<std::unique_ptr<Recording>> EndRecording() {
    return absl::UnimplementedError("this device records nothing");
  }
  // Submits the recording to kCompute, at the host cost of one kernel.
  virtual absl::Status Play(Recording& /*recording*/) {
    return absl::UnimplementedError("this device records nothing");
  }
  // Blocks the calling thread until the event completes. May return an error of earlier work.
  virtual absl::Status Await(Event& event) = 0;
  // Whether the event has completed. Does not wait, even for work of other devices. Errors as for
  // Await.
  virtual absl::StatusOr<bool> IsComplete(Event& event) = 0;
  // Seconds between two timed events that have completed in this order, by the device's clock.
  virtual absl::StatusOr<double> SecondsBetween(Event& begin, Event& end) = 0;
  // Waits until no work runs or is pending, whether it succeeded or failed.
  virtual void Finish() = 0;
};

}  // namespace shoal
