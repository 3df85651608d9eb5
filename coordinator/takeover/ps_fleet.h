#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/rpc/backoff.h"
#include "common/rpc/network.h"
#include "common/rpc/scope.h"
#include "common/run/run_verdict.h"
#include "coordinator/takeover/checkpoint_rows.h"
#include "coordinator/takeover/ps_link.h"
#include "coordinator/takeover/run_lock.h"
#include "proto/parameter_server.pb.h"

namespace shoal {

// Takeover and restore (section 7 of the protocol): claims all ps under a fresh term, then adopts
// the timeline they agree on, or has them load the newest whole checkpoint, or the seed. In office
// it probes them every second and starts over when one has lost its variables.
//
//              all claimed, one timeline
//   claiming ───────────────────────────────────────▶ leading
//    ▲  ▲ │                                            ▲  │
//    │  │ └── otherwise ──▶ looking ──▶ loading ───────┘  │
//    │  └─ load failed, new incarnation ────┘ all loaded  │
//    └───────── new incarnation, other timeline ──────────┘
//
// No threads of its own; loop thread only.
class PsFleet {
 public:
  enum class Phase { kClaiming, kLooking, kLoading, kLeading };

  // A timeline that work may begin in.
  struct Opened {
    uint64_t timeline = 0;
    bool adopted = false;  // workers of the former coordinator may still hold leases
    uint64_t base = 0;     // all steps below are applied everywhere,
    std::vector<uint64_t> done_after_base;  // and these
    std::string checkpoint;  // what was loaded: directory, or empty (seed, or adopted)
    std::optional<StoredCheckpoint> loaded;  // the same
  };

  struct Options {
    EventLoop* loop = nullptr;  // these outlive this
    Network* network = nullptr;
    CheckpointStore* store = nullptr;  // used in Offload only
    RunLock* lease = nullptr;          // of the store's run; null: nobody else writes there
    std::vector<std::string> addresses;
    std::string job_text;
    uint32_t job_fingerprint = 0;
    uint32_t shard_map_fingerprint = 0;  // of this number of ps
    // The most that a ps of this job may say: steps applied after a base, and ranges written.
    uint64_t most_applied_after_base = std::numeric_limits<uint64_t>::max();
    uint64_t most_written_ranges = std::numeric_limits<uint64_t>::max();
    uint32_t coordinator_id = 0;  // random
    proto::Claimant self;         // as other coordinators are told it
    bool take_over = false;       // the ps of another run, too
    // Whether training may begin at step 0; asked where there is no checkpoint, not even a damaged
    // one, which is refused here. On another thread.
    std::function<absl::Status()> may_begin_anew;
    // Makes the checkpoint that a training begins with, under a term; empty: it begins with the
    // seed. Where it may begin, on the same thread.
    std::function<absl::StatusOr<StoredCheckpoint>(uint64_t term)> make_first;
    // What the store holds at the start, newest first.
    std::function<void(const std::vector<StoredCheckpoint>&)> on_stored;
    std::function<void(const Opened&)> on_opened;
    // The timeline is over: nothing of it counts any more.
    std::function<void(const std::string& why)> on_over;
    // The end of the run, where the newest checkpoint, of this job, is that; on another thread.
    std::function<std::optional<RunEnd>(const StoredCheckpoint& newest)> end_of_run;
    // The store holds it: nothing is left to do.
    std::function<void(const RunEnd&)> on_job_finished;
    // Nobody trains: the job may have ended without this coordinator, whose predecessor has
    // dismissed the workers.
    std::function<bool()> nobody_trains;
    // Answers about cuts and stopping.
    std::function<void(int ps, const proto::ControlReply&)> on_reply;
    // All steps below are done, by what workers say; in the open timeline.
    std::function<uint64_t()> done_below;
    // Of the training set, for the ps; 0: not known yet.
    std::function<uint64_t()> training_examples;
    // What a ps has applied of the open timeline, with what was said to be done when it was asked.
    std::function<void(int ps, const proto::Claimed&)> on_applied;
    // The stream to a ps is new: what is pending has to be sent again.
    std::function<void(int ps)> on_reconnected;
    // This coordinator can't go on.
    std::function<void(const absl::Status&)> on_failed;
  };
  explicit PsFleet(Options options);

  void Start();
  // Adds the term and sends to one ps or to all that are connected.
  void Send(int ps, proto::ControlRequest request);
  void Broadcast(const proto::ControlRequest& request);
  // A fresh term for the rest of the office, which keeps its timeline: a ps names cuts by term and
  // step, so one at a step that was fenced before needs it. Only while leading.
  void RenewTerm();
  // Tells all ps what Options::training_examples say, which a probe does within a second anyway.
  void TellExamples() { Broadcast(ClaimRequest()); }
  // What counts as done is not: claims all ps under a fresh term, as after a takeover, and takes
  // from them what is. Only while leading.
  void ClaimAgain(const std::string& why) { StartOver(why); }
  // No plan of the job comes to what the ps hold, or they go by another plan: claims all ps under a
  // fresh term, and has them load the newest whole checkpoint, or the seed. Only while leading.
  void Restore(const std::string& why);
  // What every ps has applied, by its latest answer. Only in a timeline that was adopted: there all
  // have answered.
  struct Applied {
    uint64_t base = 0;                 // all steps below it,
    std::vector<uint64_t> after_base;  // and these
  };
  Applied AppliedEverywhere() const;
  // The most updates that a chunk had had when its ps said so last.
  uint64_t HighestUpdates() const;
  // Every ps that asked to leave is told that it may; returns which these are.
  std::vector<int> ReleaseDeparting();
  // Of a ps that may leave and stays: as if it had not asked.
  void ForgetDeparture(int ps) { peers_[ps].departure = Departure::kNone; }
  // Tells all ps to end; losing one is no news from then on.
  void Dismiss();
  bool dismissed() const { return dismissed_; }
  // No more claims, probes or reconnecting. The ps hear that they are free.
  void Close();

  int size() const { return static_cast<int>(peers_.size()); }
  Phase phase() const { return phase_; }
  uint64_t term() const { return term_; }
  uint64_t timeline() const { return timeline_; }
  // What one ps is waited for: "not reachable".
  struct Wait {
    const char* why;
    Time since;
  };
  std::optional<Wait> WaitFor(int ps) const;
  // What is waited for, a line each, for console and status.
  std::vector<std::string> Waiting() const;

  // Of a process: another one in its place has not asked.
  //
  //   kNone ── Departing ──▶ kAsked ── ReleaseDeparting ──▶ kAllowed ── gone, or ForgetDeparture
  //                            ▲ Departing, over a new stream: it has not heard ──┘
  enum class Departure { kNone, kAsked, kAllowed };
  // By the coordinator of another run.
  struct Held {
    proto::ClaimRefused refusal;
    Time since{};  // it was refused first
  };
  struct Peer {
    std::unique_ptr<PsLink> link;
    std::optional<proto::ServerHello> hello;
    std::optional<proto::Claimed> claimed;  // the latest answer, of any term
    bool claimed_now = false;               // it answered a Claim of term_
    bool loaded = false;                    // it answered Loaded for term_
    std::optional<Held> held;               // it has refused a Claim of term_
    Departure departure = Departure::kNone;
    Time departure_since{};
    int rows_wanted = 0;    // of loading_, that are being read
    uint64_t restarts = 0;  // another process came in its place
  };
  const Peer& peer(int ps) const { return peers_[ps]; }
  // Whether a ps is so, and since when the first of them is.
  std::optional<Time> DepartureSince(Departure departure) const;

 private:
  void Claim();
  // Claims after a pause; no answer counts until then.
  void ClaimAfter(Time pause);
  void BeginClaiming();
  // Of these, which are sorted by it; 0: there are none. An error when there is no term above it.
  static absl::StatusOr<uint64_t> HighestTimeline(const std::vector<StoredCheckpoint>& stored);
  // A fresh term for term_; false, having failed, when there is none left.
  bool TakeTerm();
  proto::ControlRequest ClaimRequest() const;
  void Probe();
  std::vector<FieldLimit> ReplyLimits() const;
  void LookForEnd();
  // The checkpoint at the end of the run did not verify.
  void NoteUnsoundEnd(const std::string& directory, const absl::Status& why);
  void SetDeparture(Peer& peer, Departure departure);
  void OnHello(int ps, const proto::ServerHello& hello);
  void OnReply(int ps, const proto::ControlReply& reply);
  void OnClaimed(int ps, const proto::Claimed& claimed);
  void FailOfAnotherJob(int ps, const proto::Claimed& claimed);
  // `by`: whom it was promised to.
  void OnTermRefused(int ps, uint64_t promised_term, const proto::Claimant& by);
  void OnClaimRefused(int ps, const proto::ClaimRefused& refused);
  // "the coordinator at HOST:PORT (...)".
  static std::string Describe(const proto::Claimant& claimant);
  void FailOfFenced(uint64_t promised_term, const proto::Claimant& by);
  void OnLoaded(int ps);
  void OpenTimeline();
  void OnLoadFailed(const proto::LoadFailed& failed);
  void OnRowsWanted(int ps, const proto::RowsWanted& wanted);
  void Decide();
  // The run directory is this coordinator's.
  void Resume();
  void LookForCheckpoint();
  void LoadAll(const std::optional<StoredCheckpoint>& checkpoint);
  void SendLoad(int ps);
  void Adopt();
  // The timeline is over; claims again under a fresh term. At once, but where the one before did
  // not last: a ps that always has a reason may not cost more than a claim a second.
  void StartOver(const std::string& why);
  void Fail(const absl::Status& status);

  const Options options_;
  std::vector<Peer> peers_;
  Phase phase_ = Phase::kClaiming;
  uint64_t term_ = 0;
  uint64_t timeline_ = 0;
  uint32_t highest_term_number_ = 0;
  std::optional<StoredCheckpoint> loading_;
  std::unique_ptr<CheckpointRows> rows_;  // of loading_, until the timeline opens
  bool looking_for_end_ = false;
  // A checkpoint at the end of the run that did not verify: not read again before that time.
  struct UnsoundEnd {
    std::string directory;
    Time again_at{};
  };
  UnsoundEnd unsound_end_;
  std::set<std::string> bad_checkpoints_;
  Timer probe_{options_.loop};
  Timer claim_again_{options_.loop};
  Backoff claims_;             // pauses before them
  bool started_over_ = false;  // since the last timeline that lasted
  bool restore_ = false;       // what is claimed next is not adopted
  Time phase_since_{};
  bool dismissed_ = false;
  bool closed_ = false;
  const Scope scope_{options_.loop};
};

}  // namespace shoal
