#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/scope.h"
#include "common/sharding/shard_map.h"
#include "coordinator/cuts/cut_fetch.h"
#include "proto/parameter_server.pb.h"

namespace shoal {

// Takes one cut at a time through its life (section 6 of the protocol).
//
//   idle ── Begin ──▶ preparing ─▶ fencing ─ all accepted ─▶ cutting ─ all written ─▶ committing
//    ▲              (files laid     │                         │  └ all ready: on_ready    │
//    │               out)           └─ refused, deadline ─────┤                           │
//    └────────────── released, when nobody holds it ◀─────────┴───────────────────────────┘
//
// A cut that is given up needs no message: the next fence replaces it. Loop thread only; files are
// written in Offload.
class Checkpointer {
 public:
  struct Options {
    EventLoop* loop = nullptr;  // these outlive this
    CheckpointStore* store = nullptr;
    const CheckpointLayout* layout = nullptr;
    // For ps whose machines do not see the store's directory.
    const ShardMap* shard_map = nullptr;
    const std::vector<Variable>* variables = nullptr;
    uint32_t coordinator_id = 0;  // random
    int ps_count = 0;
    int keep = 3;
    // Directories that stay beside these, asked on another thread before any is removed; none is
    // where it fails.
    std::function<absl::StatusOr<std::set<std::string>>()> spared = [] {
      return std::set<std::string>();
    };
    Time deadline = std::chrono::seconds(120);  // from Begin to all written
    std::map<std::string, std::string> texts;   // job.json, model.json
    Manifest manifest;                          // what every manifest of this job says
    // Whether all steps below the cut have been reported, which the ps may have applied before that
    // is heard: the commit waits for it, a moment.
    std::function<bool(uint64_t cut_step)> all_reported;
    // What is known of the epoch of the cut in progress, when it is committed.
    std::function<Manifest::EpochSums()> epoch_sums;
    // Sends to all ps.
    std::function<void(const proto::ControlRequest&)> broadcast;
    std::function<void(int ps, const proto::ControlRequest&)> send;
    // A ps was asked for a newer cut by somebody else under this term: the next cut needs a fresh
    // one.
    std::function<void()> on_superseded = [] {};
    // Every ps has accepted: steps from the cut on may be leased.
    std::function<void(uint64_t cut_step)> on_accepted;
    // Every ps serves the values of the held cut.
    std::function<void(uint64_t cut_step)> on_ready;
    std::function<void(const StoredCheckpoint&)> on_committed;
    // Its files could not be written, whatever becomes of the cut.
    std::function<void(const std::string& why)> on_error;
    // `highest_step`: where a ps refused, the highest step it has applied.
    std::function<void(uint64_t cut_step, const std::string& why,
                       std::optional<uint64_t> highest_step)>
        on_given_up;
    // The cut is over, whatever became of it; the next may begin.
    std::function<void()> on_idle;
  };
  explicit Checkpointer(Options options);

  struct Cut {
    uint64_t timeline = 0;
    uint64_t step = 0;
    uint64_t term = 0;            // under which it is made: another one for each cut at a step
    uint64_t epoch = 0;           // for the manifest
    uint64_t epoch_position = 0;  // examples
    uint64_t total_steps = 0;     // 0: not known yet, and neither are these
    uint64_t training_examples = 0;
    uint64_t test_examples = 0;
    bool hold = false;  // for an evaluation: kept until Release
  };
  // Only when idle.
  void Begin(const Cut& cut);
  bool idle() const { return !cut_.has_value(); }
  // Of the cut in progress.
  uint64_t step() const { return cut_->step; }
  bool accepted() const { return cut_.has_value() && all_accepted_; }
  // The cut in progress is kept for an evaluation.
  bool held() const { return cut_.has_value() && held_; }

  // All that is left of the cut in progress is to write its files, or to read them back.
  bool writing() const;
  // How much of it the ps have reported: grows from Begin on until it is over.
  uint64_t headway() const;

  void OnReply(int ps, const proto::ControlReply& reply);
  // The stream to this ps is new: sends it the fence again, which it answers again, and asks it
  // again for what it has not sent of the cut.
  void Resend(int ps);
  // The held cut is not needed any more.
  void Release();
  // The timeline is over, or the cut takes too long.
  void GiveUp(const std::string& why, std::optional<uint64_t> highest_step = std::nullopt);

  // The newest that was committed here, or restored from.
  const std::optional<StoredCheckpoint>& last() const { return last_; }
  // The same; before the first, the newest that there was on disk, which nobody has verified.
  const std::optional<StoredCheckpoint>& newest() const {
    return last_.has_value() ? last_ : stored_;
  }
  // The newest that is known here and whose values are all finite: one that stays.
  const std::optional<StoredCheckpoint>& last_finite() const { return last_finite_; }
  Time last_at() const { return last_at_; }
  // Checkpoints written, and attempts that failed, since the start.
  uint64_t committed() const { return committed_; }
  uint64_t failures() const { return failures_; }
  Time last_duration() const { return last_duration_; }
  const std::string& last_error() const { return last_error_; }
  // When the first of the attempts failed that have failed since the last success.
  const std::optional<Time>& failing_since() const { return failing_since_; }
  // What a cut that takes long waits for; empty when there is none.
  std::string Waiting(Time now) const;
  // What a restore has loaded counts as the last one.
  void SetLast(const StoredCheckpoint& checkpoint);
  // What there was on disk at the start, newest first.
  void SetStored(const std::vector<StoredCheckpoint>& newest_first);

 private:
  struct Peer {
    bool accepted = false;
    bool ready = false;
    bool written = false;
    std::unique_ptr<CutFetch> fetch;  // while its rows are read
  };
  void Fence();
  proto::ControlRequest FenceRequest() const;
  void OnRefused(int ps, const proto::FenceRefused& refused);
  void OnWritten(int ps, const proto::Written& written);
  void Fetch(int ps);
  void OnParts(int ps, absl::StatusOr<std::vector<WrittenPart>> parts);
  // No ps needs to keep the cut at this step any more.
  void SendRelease(uint64_t cut_step);
  void AwaitReports(int tries);
  void Commit();
  void MaybeIdle();
  void NoteError(const std::string& why);
  // Off the loop: the directory of a cut that was given up goes.
  void Abandon(const std::string& directory);

  const Options options_;
  std::optional<Cut> cut_;
  std::string directory_;
  std::vector<Peer> peers_;
  std::vector<WrittenPart> parts_;
  bool all_accepted_ = false;
  bool held_ = false;
  bool kept_ = false;  // by some ps until they hear Release
  std::string marker_;
  bool committing_ = false;
  bool files_done_ = false;
  uint64_t attempt_ = 0;  // numbers the cuts begun, so that what was offloaded finds its own
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
