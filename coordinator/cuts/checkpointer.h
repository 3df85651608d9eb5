#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/scope.h"
#include "common/sharding/shard_map.h"
#include "coordinator/cuts/cut_fetch.h"
#include "coordinator/turns/wakeup.h"
#include "proto/parameter_server.pb.h"

namespace shoal {

// Takes one cut at a time from its begin to its checkpoint (section 6 of the protocol).
//
//   idle ── Begin ──▶ preparing ─▶ fencing ─ all accepted ─▶ cutting ─ all written ─▶ committing
//    ▲              (files laid     │                         │  └ all ready: Ready       │
//    │               out)           └─ rejected, deadline ────┤                           │
//    └─────────────── released, unless it is held ◀───────────┴───────────────────────────┘
//
// A cancelled cut needs no message: the next fence replaces it. Loop thread only; Offload
// writes the files.
class Checkpointer {
 public:
  struct Options {
    EventLoop* loop = nullptr;  // these outlive this
    CheckpointStore* store = nullptr;
    const CheckpointLayout* layout = nullptr;
    // These two: for ps whose machines do not see the store's directory.
    const ShardMap* shard_map = nullptr;
    const std::vector<Variable>* variables = nullptr;
    uint32_t coordinator_id = 0;  // random
    int ps_count = 0;
    int keep = 3;
    // Returns more directories that must stay. Runs on another thread before old checkpoints are
    // removed. If it fails, none is removed.
    std::function<absl::StatusOr<std::set<std::string>>()> pinned = [] {
      return std::set<std::string>();
    };
    Time deadline = std::chrono::seconds(120);  // from Begin to all written
    std::map<std::string, std::string> texts;   // job.json, model.json
    Manifest manifest;                          // the fields that all manifests of this job share
    // Returns whether all steps below the cut have been reported. The ps may apply steps before
    // their reports arrive, so the commit waits for these for 200 ms.
    std::function<bool(uint64_t cut_step)> all_reported;
    // Returns the sums so far of the epoch of the cut in progress. Called at the commit.
    std::function<Manifest::EpochSums()> epoch_sums;
    // Sends to all ps.
    std::function<void(const proto::ControlRequest&)> broadcast;
    // Sends to one ps.
    std::function<void(int ps, const proto::ControlRequest&)> send;
    // Raised after each outcome, and when the cut is over, committed or not: the next may begin.
    Wakeup* wakeup = nullptr;
  };
  explicit Checkpointer(Options options);

  struct Cut {
    uint64_t timeline = 0;
    uint64_t step = 0;
    uint64_t term = 0;            // differs between cuts at the same step
    uint64_t epoch = 0;           // for the manifest
    uint64_t epoch_position = 0;  // examples
    uint64_t total_steps = 0;     // 0: not known yet, like the two below
    uint64_t training_examples = 0;
    uint64_t test_examples = 0;
    bool hold = false;  // for an evaluation: the ps keep the cut until Release
  };
  // Begins a cut. Requires idle().
  void Begin(const Cut& cut);
  bool idle() const { return !cut_.has_value(); }
  // The step of the cut in progress. Requires one.
  uint64_t step() const { return cut_->step; }
  // True if all ps have accepted the cut in progress.
  bool accepted() const { return cut_.has_value() && all_accepted_; }
  // True while the cut in progress is kept for an evaluation.
  bool held() const { return cut_.has_value() && held_; }

  // True if the cut in progress only waits for its files to be written or read back.
  bool writing() const;
  // Number of answers that the ps have given for the cut in progress. Grows from Begin on until the
  // cut is over.
  uint64_t headway() const;

  // Handles the answer of a ps. Ignores answers that are not about the cut in progress.
  void OnReply(int ps, const proto::ControlReply& reply);
  // The stream to this ps is new: sends the fence again, which the ps answers again, and requests
  // the missing rows of the cut again.
  void Resend(int ps);
  // The held cut is no longer needed.
  void Release();
  // A ps has seen a newer fence under this term from another process. The next cut needs a fresh
  // term.
  struct Superseded {};
  // Every ps has accepted: steps from the cut on may be leased.
  struct Accepted {
    uint64_t step = 0;
  };
  // Every ps serves the values of the cut.
  struct Ready {
    uint64_t step = 0;
  };
  // The checkpoint is on disk. Its cut may have been cancelled before.
  struct Committed {
    StoredCheckpoint checkpoint;
  };
  // The checkpoint failed. A held cut may still serve its evaluation.
  struct Failed {
    std::string why;
  };
  // `highest_step`: if a ps rejected the cut, the highest step that it has applied.
  struct Cancelled {
    uint64_t step = 0;
    std::string why;
    std::optional<uint64_t> highest_step;
  };
  using Outcome = std::variant<Superseded, Accepted, Ready, Committed, Failed, Cancelled>;
  // Returns the outcomes since the last call, in their order.
  std::vector<Outcome> TakeOutcomes() { return std::exchange(outcomes_, {}); }

  // Cancels the cut in progress: the timeline is over, a ps rejected it, or it takes too long.
  void Cancel(const std::string& why, std::optional<uint64_t> highest_step = std::nullopt);
  // Cancels the cut in progress because the caller begins one at an earlier step. Logs no warning.
  void Replace(const std::string& why);

  // The newest checkpoint that was committed or restored by this coordinator.
  const std::optional<StoredCheckpoint>& last() const { return last_; }
  // As last(). Before there is one, the newest on disk at the start, which is not verified.
  const std::optional<StoredCheckpoint>& newest() const {
    return last_.has_value() ? last_ : stored_;
  }
  // The newest known checkpoint whose values are all finite. RemoveOld keeps it.
  const std::optional<StoredCheckpoint>& last_finite() const { return last_finite_; }
  Time last_at() const { return last_at_; }
  // Number of checkpoints written since the start.
  uint64_t committed() const { return committed_; }
  // Number of failed attempts since the start.
  uint64_t failures() const { return failures_; }
  Time last_duration() const { return last_duration_; }
  const std::string& last_error() const { return last_error_; }
  // When the first attempt failed since the last success.
  const std::optional<Time>& failing_since() const { return failing_since_; }
  // Says what a cut waits for that takes over 5 s; empty if there is none.
  std::string Waiting(Time now) const;
  // Sets last() to the checkpoint that a restore has loaded.
  void SetLast(const StoredCheckpoint& checkpoint);
  // The checkpoints that were on disk at the start, newest first.
  void SetStored(const std::vector<StoredCheckpoint>& newest_first);

 private:
  struct Peer {
    bool accepted = false;
    bool ready = false;
    bool written = false;
    std::unique_ptr<CutFetch> fetch;  // while its rows are read
  };
  void Keep(Outcome outcome);
  void Fence();
  proto::ControlRequest FenceRequest() const;
  void OnRejected(int ps, const proto::FenceRejected& rejected);
  void OnWritten(int ps, const proto::Written& written);
  void Fetch(int ps);
  void OnParts(int ps, absl::StatusOr<std::vector<WrittenPart>> parts);
  // Tells the ps to drop their copy of the cut at this step, if some keep one.
  void SendRelease(uint64_t cut_step);
  void AwaitReports(int tries);
  void Commit();
  void MaybeIdle();
  void NoteError(const std::string& why);
  // Removes the directory of a cancelled cut, off the loop.
  void RemoveDirectory(const std::string& directory);
  // Ends the cut in progress without a checkpoint. Requires that there is one.
  void Drop(const std::string& why, std::optional<uint64_t> highest_step);

  const Options options_;
  std::optional<Cut> cut_;
  std::string directory_;
  std::vector<Peer> peers_;
  std::vector<WrittenPart> parts_;
  std::vector<Outcome> outcomes_;
  bool all_accepted_ = false;
  bool held_ = false;
  bool kept_ = false;  // some ps keep the cut until they get a Release
  std::string marker_;
  bool committing_ = false;
  bool files_done_ = false;
  uint64_t attempt_ = 0;  // number of the cut; offloaded work compares it when it returns
  Time began_{};
  Timer deadline_{options_.loop};
  std::optional<StoredCheckpoint> last_;
  std::optional<StoredCheckpoint> last_finite_;
  std::optional<StoredCheckpoint> stored_;
  Time last_at_{};
  Time last_duration_{};
  std::string last_error_;
  uint64_t committed_ = 0;
  uint64_t failures_ = 0;
  std::optional<Time> failing_since_;
  const Scope scope_{options_.loop};
};

}  // namespace shoal
