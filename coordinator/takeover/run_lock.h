#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/files/file_system.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/scope.h"

namespace shoal {

// The coordinator that leads a run, by the run's lease file.
struct LeaseHolder {
  std::string address;  // HOST:PORT of the coordinator
  std::string host;
  int64_t pid = 0;
  // Distinguishes the process from others of its machine (common/daemon/process/process_mark.h).
  std::string process;
  std::string since;  // when it was started, for people
  bool left = false;  // it ended in order and leads no more
};

// Returns this process as a holder. The caller sets its address.
LeaseHolder ThisProcess();

// Returns the coordinator that leads or led last, by the newest file in RUN_DIR/.lease. Returns
// none if there is no file, or if it cannot be read.
std::optional<LeaseHolder> ReadLeaseHolder(const std::string& directory, FileSystem* files);

// The right to write into a run directory. Terms separate two coordinators of the same ps, but not
// two coordinators of different ps. Without a lock the second would continue from the first's
// checkpoints, and each would remove the other's unfinished files.
//
// RUN_DIR/.lease holds one file, named by a number. A coordinator takes the lock by creating the
// next number exclusively. Only one can succeed, also on a network file system. The highest number
// counts. Its holder rewrites the file in place every two seconds while it leads, so that a full
// disk does not end its lease. Clocks of different machines are never compared: a waiting
// coordinator watches whether the file changes. It takes over at once if
//
//   - the holder has left in order, or
//   - a ps of the holder has accepted the waiting coordinator's claim, whose higher term ends the
//     holder's lead, or
//   - the holder was a process of this machine that is gone.
//
// Otherwise it takes over when the file has not changed for ten seconds. A file that keeps changing
// for this long belongs to a coordinator that leads other ps. The waiting coordinator is then
// rejected.
//
//   idle ── Acquire ──▶ watching ──▶ leading ── Pause ──▶ idle
//                          └──▶ rejected  └── a higher number than ours: lost
//
// If the disk accepts no new file, it leads without one and retries. If the directory cannot be
// listed, it waits. No threads of its own; loop thread only. Files are read and written in
// Lane::kBrief: reading back a checkpoint of gigabytes must not delay a renewal.
class RunLock {
 public:
  struct Options {
    EventLoop* loop = nullptr;  // these outlive this
    FileSystem* files = nullptr;
    std::string directory;  // RUN_DIR/.lease
    LeaseHolder self;
    // Returns whether the process with this mark is known to be gone. Null: none is.
    std::function<bool(const std::string& process)> is_gone;
    // Another coordinator has taken over while this one led: it must write no more. May be null for
    // a caller that releases the lock as soon as it has it.
    std::function<void(const absl::Status&)> on_lost;
    // This coordinator leads from now on. Called before `done` of Acquire, and again after each
    // Pause. May be null.
    std::function<void()> on_lead;
  };
  explicit RunLock(Options options);

  // Requests the lock for a coordinator that has claimed the ps of these incarnations. Calls `done`
  // once: OK, or kFailedPrecondition with the holder's name. A new call replaces a waiting one.
  void Acquire(std::vector<uint64_t> ps, std::function<void(const absl::Status&)> done);
  // This coordinator stops leading for now, and stops renewing. Others wait at most ten seconds.
  void Pause();
  // This coordinator leads no more. Once the work in Lane::kBrief is done, the next one need not
  // wait. Must be the last call.
  void Release();

  // The holder's mark, from the time when this coordinator first owned a file; empty before.
  std::string Process() const { return had_file_ ? options_.self.process : ""; }

  // True while this coordinator leads, as far as it knows.
  bool leading() const { return leading_; }

  // Returns a check for work in Offload that is about to write a file which all coordinators of the
  // run share: OK, or kAborted if another one has taken the lock. A coordinator that was stopped
  // for a while does not know that yet. The check may outlive this; any thread.
  std::function<absl::Status()> WriteCheck() const;

  // Describes what Acquire waits for, for console and status. Empty if it does not wait.
  std::string Waiting() const;

 private:
  // The content of the directory.
  struct Seen {
    absl::Status status;
    uint64_t number = 0;  // 0: no file
    std::string text;
  };
  // A file that is being created.
  struct Creation {
    uint64_t number = 0;
    bool file = false;     // the file exists and is ours
    bool quicker = false;  // another coordinator was quicker, or may have been
    absl::Status status;
  };
  // The lease of another coordinator.
  struct Watched {
    uint64_t number = 0;
    std::string text;
    Time first{};    // when it was first seen
    Time changed{};  // when it was first seen with this text
  };

  void Look();
  void OnSeen(const Seen& seen, Time asked);
  void OnForeign(const Seen& seen, Time asked);
  void Create(uint64_t number);
  void Renew();
  void Lead();
  void LookAfter(Time delay);
  void Answer(const absl::Status& status);
  std::string Text(bool left) const;
  std::string Path(uint64_t number) const;
  // "the coordinator at HOST:PORT (...)".
  static std::string Describe(const std::string& text);

  const Options options_;
  uint64_t number_ = 0;  // of our file; 0: none
  bool had_file_ = false;
  uint64_t outlived_ = 0;  // the highest number of another coordinator that has expired
  bool leading_ = false;
  std::optional<Time> busy_since_;  // set while files are being read or written
  bool look_again_ = false;         // look again when that is done
  std::shared_ptr<Creation> creating_;
  bool warned_ = false;  // logged that no file can be written
  uint64_t renewals_ = 0;
  std::vector<uint64_t> ps_;
  std::function<void(const absl::Status&)> done_;  // set while Acquire waits
  std::optional<Watched> watched_;
  absl::Status looked_;  // result of the last listing of the directory
  Timer timer_{options_.loop};
  const Scope scope_{options_.loop};
};

}  // namespace shoal
