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

// Who leads a run, as the file of its lease says.
struct LeaseHolder {
  std::string address;  // HOST:PORT of the coordinator
  std::string host;
  int64_t pid = 0;
  std::string
      process;        // tells it from others of its machine (common/daemon/process/process_mark.h)
  std::string since;  // when it was started, for people
  bool left = false;  // in order: it leads no more
};

// This process, as a holder; its address is the caller's to give.
LeaseHolder ThisProcess();

// Who has led last, or leads, by the newest file in RUN_DIR/.lease. Nothing where there is none, or
// none that can be read.
std::optional<LeaseHolder> ReadLeaseHolder(const std::string& directory, FileSystem* files);

// The right to write into a run directory. Terms keep two coordinators of the same ps apart, but
// not two whose ps differ: the second would go on from the first's checkpoints, and each would
// remove what the other has not finished.
//
// RUN_DIR/.lease holds one file, whose name is a number. Whoever takes the lease creates the next
// number, exclusively, so that one alone succeeds, also on a network's file system; the highest
// number counts. Its holder writes the file anew every two seconds while it leads, in place, so
// that a full disk does not end its lease. Clocks of different machines are not compared: who waits
// watches whether the file changes. It takes over
//
//   at once, when the holder has left in order; when a ps of the holder has followed the claim of
//   who waits, which ends the holder's office by the terms; when the holder is a process of this
//   machine that is gone;
//   else when the file has not changed for ten seconds. A file that changes on for as long is that
//   of a coordinator that leads other ps: then who waits is refused.
//
//   idle ── Acquire ──▶ watching ──▶ leading ── Pause ──▶ idle
//                          └──▶ refused   └── a higher number than ours: lost
//
// Where the disk takes no new file, it leads without, and tries again; where it does not say what
// the directory holds, it waits. No threads of its own; loop thread only; files are read and
// written in Lane::kBrief, as a checkpoint of gigabytes that is read back must not cost the lease.
class RunLock {
 public:
  struct Options {
    EventLoop* loop = nullptr;  // these outlive this
    FileSystem* files = nullptr;
    std::string directory;  // RUN_DIR/.lease
    LeaseHolder self;
    // Whether the process with that mark is known to be gone; may be null: none is.
    std::function<bool(const std::string& process)> is_gone;
    // Another has taken over while this one led, or seemed to: it must write no more. May be null
    // for one that gives the lease back as soon as it has it.
    std::function<void(const absl::Status&)> on_lost;
    // It leads from now on, which may happen again after a Pause. Before `done` of Acquire. May be
    // null.
    std::function<void()> on_lead;
  };
  explicit RunLock(Options options);

  // Asks for the lease, for one who has claimed the ps of these incarnations. `done` is called
  // once: OK, or kFailedPrecondition, which names the holder. A call replaces one that waits still.
  void Acquire(std::vector<uint64_t> ps, std::function<void(const absl::Status&)> done);
  // It does not lead at the moment: others need not wait for it for longer than ten seconds.
  void Pause();
  // It leads no more: the next one need not wait, once what is in Lane::kBrief is done. The last
  // call.
  void Release();

  // The holder's mark, from when a file in the directory has been this one's; empty before.
  std::string Process() const { return had_file_ ? options_.self.process : ""; }

  // It leads, as far as it knows.
  bool leading() const { return leading_; }

  // Whom or what Acquire waits for, for console and status; empty where it does not.
  std::string Waiting() const;

 private:
  // What the directory holds.
  struct Seen {
    absl::Status status;
    uint64_t number = 0;  // 0: no file
    std::string text;
  };
  // A file that is being made.
  struct Creation {
    uint64_t number = 0;
    bool file = false;     // it is there, and ours
    bool quicker = false;  // somebody else was, or may have been
    absl::Status status;
  };
  // A lease that is another's.
  struct Watched {
    uint64_t number = 0;
    std::string text;
    Time first{};    // when it was seen first,
    Time changed{};  // and with this text
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
  uint64_t outlived_ = 0;  // the highest number of others that counts no more
  bool leading_ = false;
  std::optional<Time> busy_since_;  // files are being read or written
  bool look_again_ = false;         // when that is over
  std::shared_ptr<Creation> creating_;
  bool warned_ = false;  // that nothing can be written
  uint64_t renewals_ = 0;
  std::vector<uint64_t> ps_;
  std::function<void(const absl::Status&)> done_;  // while somebody waits
  std::optional<Watched> watched_;
  absl::Status looked_;  // whether the directory could be listed, the last time
  Timer timer_{options_.loop};
  const Scope scope_{options_.loop};
};

}  // namespace shoal
