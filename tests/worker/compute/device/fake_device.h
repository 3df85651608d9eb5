#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/device/device.h"

namespace shoal {

// The seeds that a test tries. Each draws another order of the streams; most show a wait that is
// missing.
inline constexpr uint64_t kSeeds = 30;

// A Device in host memory. It does nothing until the host waits. Then it runs the next item of a
// stream that the seed draws, until the awaited event has happened. With most seeds, one stream is
// lazy: it does nothing while another stream can run. So several seeds together cover every order
// that the events allow. Code that reads before it waits for the copy or kernel reads not-a-number.
//
// A copy in fails if its source has changed since the call, or if either memory is no longer the
// device's. A copy out to unpinned memory blocks the host, as with CUDA. All items must have run
// before destruction. Each thread has a current device, as with CUDA: the last one that it created
// or selected. The process ends if a thread allocates or frees something of another device. The
// device logs all its calls.
class FakeDevice : public Device {
 public:
  explicit FakeDevice(uint64_t seed);
  ~FakeDevice() override;

  void UseOnThisThread() override;
  absl::StatusOr<std::unique_ptr<Memory>> Allocate(int64_t size_bytes) override;
  absl::StatusOr<int64_t> FreeBytes() override { return memory_bytes_ - taken_bytes_; }
  absl::StatusOr<std::unique_ptr<Memory>> AllocateHost(int64_t size_bytes) override;
  absl::StatusOr<std::unique_ptr<PinnedBuffer>> Pin(void* memory, int64_t size_bytes) override;
  absl::StatusOr<std::unique_ptr<Event>> NewEvent() override;
  absl::StatusOr<std::unique_ptr<Event>> NewTimedEvent() override { return NewEvent(); }
  absl::Status CopyIn(const void* from, char* to, int64_t size_bytes) override;
  absl::Status CopyOut(const char* from, void* to, int64_t size_bytes) override;
  absl::Status Launch(Kernel& kernel, const RunContext* context,
                      std::span<void* const> tensors) override;
  absl::Status Record(Stream stream, Event& event) override;
  absl::Status Wait(Stream stream, Event& event) override;
  absl::Status BeginRecording() override;
  absl::StatusOr<std::unique_ptr<Recording>> EndRecording() override;
  absl::Status Play(Recording& recording) override;
  absl::Status Await(Event& event) override;
  // Runs all items that can run before it returns false.
  absl::StatusOr<bool> IsComplete(Event& event) override;
  // Returns one second for each item that has run.
  absl::StatusOr<double> SecondsBetween(Event& begin, Event& end) override;
  void Finish() override;

  // Adds an item to kOut that runs once `may_run` returns true. The threads of other devices must
  // make it true. The log gets "out: WHAT".
  void GiveOut(const std::string& what, std::function<bool()> may_run,
               std::function<absl::Status()> run);

  // Lines of the log: "in: copy 12" with the number of bytes; "compute: kernel"; "out: copy 12";
  // "in: event 0" with the event's number in the order of NewEvent(); "compute: wait 0"; "host:
  // wait 0"; "host: held up" by a copy out; "compute: record", then the recorded items, then
  // "compute: recorded"; "compute: play".
  std::vector<std::string>& log() { return log_; }
  // Returns whether all items have run.
  bool idle() const;
  // From now on, every recording fails at its end.
  void CannotRecord() { cannot_record_ = true; }
  // Sets the size of its memory, which is very large by default.
  void SetMemory(int64_t size_bytes) { memory_bytes_ = size_bytes; }
  int64_t taken_bytes() const { return taken_bytes_; }
  // Returns the number of pinned bytes of the host.
  int64_t pinned_bytes() const;

 private:
  struct FakeEvent;
  class FakeMemory;
  class Pinning;
  struct FakeRecording;
  // An item of a stream. It runs once `awaited` has been reached `times` times and `may_run` allows
  // it. Then it counts up `reached`.
  struct Item {
    std::shared_ptr<int64_t> awaited = nullptr;
    int64_t times = 0;
    std::function<bool()> may_run = nullptr;
    std::function<absl::Status()> run = nullptr;
    std::shared_ptr<int64_t> reached = nullptr;
    std::shared_ptr<int64_t> reached_at = nullptr;  // then set to things_done_
  };

  void CheckIsCurrent() const;
  void Give(Stream stream, Item item);
  // Adds an item now or, in a recording, each time that it is played.
  void GiveOrRecord(Stream stream, std::function<void()> give);
  enum class Progress {
    kOne,
    kNone,    // no item can ever run
    kNotNow,  // other devices must act first
  };
  // Runs the next item of a stream.
  Progress DoOne();
  // Runs items until `done`. Returns an error if that is impossible, and kDeadlineExceeded after a
  // minute of waiting for other devices.
  absl::Status DoUntil(const std::function<bool()>& done);
  bool IsPinned(const char* memory, int64_t size_bytes) const {
    return Contains(pinned_, memory, size_bytes);
  }
  // Returns whether one of these pieces contains the whole range.
  static bool Contains(const std::map<const char*, int64_t>& pieces, const char* memory,
                       int64_t size_bytes);

  static constexpr size_t kStreams = 3;

  std::mt19937_64 random_;
  const size_t lazy_;  // the lazy stream; kStreams: none
  int64_t memory_bytes_ = int64_t{1} << 40;
  int64_t taken_bytes_ = 0;
  int64_t things_done_ = 0;
  bool cannot_record_ = false;
  std::array<std::deque<Item>, kStreams> streams_;
  std::map<const char*, int64_t> pinned_;  // sizes by address
  std::map<const char*, int64_t> taken_;   // likewise, of the device
  int events_ = 0;
  std::unique_ptr<FakeRecording> recording_;  // null: no recording is in progress
  absl::Status error_;                        // the first one; later items do not run
  std::vector<std::string> log_;
};

}  // namespace shoal
