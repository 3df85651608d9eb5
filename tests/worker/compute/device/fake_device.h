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

// A Device in the memory of the host. It does nothing before the host waits, and then what one of
// its streams has next, drawn by the seed, until what the host waits for has come to pass; with
// most seeds one of the streams does nothing while another can. So over some seeds it is whatever
// order the events allow, and who reads before a copy or a kernel that is not waited for, reads
// not-a-number. A copy in fails where what it reads is not as it was when it was given, or where
// either memory is none of the device's any more. A copy out to memory that is not pinned holds the
// host up, as CUDA's do. All that it is given must have run before it ends. As of CUDA's, one is a
// thread's current one, the last that it has made or said it uses, and what gets or gives back
// something of another ends the process. It writes down all that it is told.
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
  // Does all that it can before it says no.
  absl::StatusOr<bool> HasHappened(Event& event) override;
  // A second for each thing that was done.
  absl::StatusOr<double> SecondsBetween(Event& begin, Event& end) override;
  void Finish() override;

  // Gives kOut something else to do when `may_run` says so, which is for the threads of other
  // devices to bring about; "out: WHAT" in the log.
  void GiveOut(const std::string& what, std::function<bool()> may_run,
               std::function<absl::Status()> run);

  // "in: copy 12", bytes; "compute: kernel"; "out: copy 12"; "in: event 0", a number for each in
  // the order of NewEvent(); "compute: wait 0"; "host: wait 0"; "host: held up" by a copy out;
  // "compute: record", behind which is what was recorded, to "compute: recorded"; "compute: play".
  std::vector<std::string>& log() { return log_; }
  // Whether all that was given has run.
  bool idle() const;
  // From now on recordings fail, when they end.
  void CannotRecord() { cannot_record_ = true; }
  // How much memory it has; at first as much as anyone may want.
  void SetMemory(int64_t size_bytes) { memory_bytes_ = size_bytes; }
  int64_t taken_bytes() const { return taken_bytes_; }
  // Bytes of the host that are pinned.
  int64_t pinned_bytes() const;

 private:
  struct FakeEvent;
  class FakeMemory;
  class Pinning;
  struct FakeRecording;
  // One thing to do, once `awaited` has been reached so many times and it may run; then `reached`
  // is.
  struct Item {
    std::shared_ptr<int64_t> awaited = nullptr;
    int64_t times = 0;
    std::function<bool()> may_run = nullptr;
    std::function<absl::Status()> run = nullptr;
    std::shared_ptr<int64_t> reached = nullptr;
    std::shared_ptr<int64_t> reached_at = nullptr;  // set to things_done_ then
  };

  void CheckIsCurrent() const;
  void Give(Stream stream, Item item);
  // Gives it now or, of what is recorded, each time that it is played.
  void GiveOrRecord(Stream stream, std::function<void()> give);
  enum class Progress {
    kOne,
    kNone,    // nothing that it may do, now or ever
    kNotNow,  // other devices are to do something first
  };
  // Does what a stream has next.
  Progress DoOne();
  // Does one thing after the other until `done`. An error where that cannot be; kDeadlineExceeded
  // where it has waited for other devices for a minute.
  absl::Status DoUntil(const std::function<bool()>& done);
  bool IsPinned(const char* memory, int64_t size_bytes) const {
    return Contains(pinned_, memory, size_bytes);
  }
  // Whether one of these pieces has all of that.
  static bool Contains(const std::map<const char*, int64_t>& pieces, const char* memory,
                       int64_t size_bytes);

  static constexpr size_t kStreams = 3;

  std::mt19937_64 random_;
  const size_t lazy_;  // the stream that does nothing while another can; kStreams: none
  int64_t memory_bytes_ = int64_t{1} << 40;
  int64_t taken_bytes_ = 0;
  int64_t things_done_ = 0;
  bool cannot_record_ = false;
  std::array<std::deque<Item>, kStreams> streams_;
  std::map<const char*, int64_t> pinned_;  // sizes by address
  std::map<const char*, int64_t> taken_;   // likewise, of the device's own
  int events_ = 0;
  std::unique_ptr<FakeRecording> recording_;  // null: nothing is recorded
  absl::Status error_;                        // the first; what comes after it is not done
  std::vector<std::string> log_;
};

}  // namespace shoal
