#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/pinned_buffer.h"
#include "worker/compute/program.h"

namespace shoal {

// A device with memory of its own, as DeviceExecutable drives it. It works beside the host: what is
// given to a stream begins when all that was given to that stream before has ended, and the calls
// return before that. Streams wait for each other by events alone. Not thread-safe.
class Device {
 public:
  enum class Stream {
    kIn,       // copies from the host
    kCompute,  // kernels
    kOut,      // copies to the host
  };
  // A piece of memory, given back with this. Outlived by the device.
  class Memory {
   public:
    virtual ~Memory() = default;
    virtual char* data() const = 0;
  };
  // A point in a stream, made once and recorded anew in each run. Outlived by the device.
  class Event {
   public:
    virtual ~Event() = default;
  };

  // What kCompute was given, to be given again as one piece.
  class Recording {
   public:
    virtual ~Recording() = default;
  };

  virtual ~Device() = default;

  // Called on a thread before it calls what follows, if another did before.
  virtual void UseOnThisThread() {}

  // kResourceExhausted where there is not so much.
  virtual absl::StatusOr<std::unique_ptr<Memory>> Allocate(int64_t size_bytes) = 0;
  // Of such memory, what is free.
  virtual absl::StatusOr<int64_t> FreeBytes() = 0;
  // Of the host, and pinned: copies from and to it run beside the host. Scarce.
  virtual absl::StatusOr<std::unique_ptr<Memory>> AllocateHost(int64_t size_bytes) = 0;
  // The caller's memory becomes such memory for as long as what this gives is held, which its owner
  // lets go of first: another address may be given the same pages, and they stay the device's.
  virtual absl::StatusOr<std::unique_ptr<PinnedBuffer>> Pin(void* memory, int64_t size_bytes) = 0;
  virtual absl::StatusOr<std::unique_ptr<Event>> NewEvent() = 0;
  // One of kCompute, with the time at which it happens.
  virtual absl::StatusOr<std::unique_ptr<Event>> NewTimedEvent() = 0;

  // On kIn and kOut. The host's memory must stay until the copy has ended. Where it is not pinned,
  // the call may return only when the copy, and so all before it in its stream, has run.
  virtual absl::Status CopyIn(const void* from, char* to, int64_t size_bytes) = 0;
  virtual absl::Status CopyOut(const char* from, void* to, int64_t size_bytes) = 0;
  // On kCompute. `context` and `tensors` are in the device's memory; the span is read before the
  // call returns.
  virtual absl::Status Launch(Kernel& kernel, const RunContext* context,
                              std::span<void* const> tensors) = 0;

  // `event` stands for all that was given to `stream` until now.
  virtual absl::Status Record(Stream stream, Event& event) = 0;
  // What is given to `stream` from now on begins after what `event` stands for.
  virtual absl::Status Wait(Stream stream, Event& event) = 0;
  // Between these two, what kCompute is given does not run, but is recorded: kernels with their
  // addresses, and events as such, not as what they stood for then. Kernels must have run once
  // before. Where the first fails nothing is recorded: kUnimplemented of a device that can't.
  virtual absl::Status BeginRecording() {
    return absl::UnimplementedError("this device records nothing");
  }
  virtual absl::StatusOr<std::unique_ptr<Recording>> EndRecording() {
    return absl::UnimplementedError("this device records nothing");
  }
  // Gives it to kCompute, which costs the host as little as one kernel.
  virtual absl::Status Play(Recording& /*recording*/) {
    return absl::UnimplementedError("this device records nothing");
  }
  // The calling thread waits for it. An error of what ran before may be given here.
  virtual absl::Status Await(Event& event) = 0;
  // Whether there is nothing to wait for. Does not wait for what other devices do. Errors as Await.
  virtual absl::StatusOr<bool> HasHappened(Event& event) = 0;
  // Of two that are timed and have happened, one after the other: by the device's clock.
  virtual absl::StatusOr<double> SecondsBetween(Event& begin, Event& end) = 0;
  // Waits until nothing runs or waits to run, whatever became of it.
  virtual void Finish() = 0;
};

}  // namespace shoal
