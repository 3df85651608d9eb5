#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/rpc/backoff.h"
#include "common/rpc/network.h"
#include "common/rpc/scope.h"
#include "common/run/run_verdict.h"
#include "coordinator/takeover/checkpoint_rows.h"
#include "coordinator/takeover/checkpoint_search.h"
#include "coordinator/takeover/claim_errors.h"
#include "coordinator/takeover/end_search.h"
#include "coordinator/takeover/ps_link.h"
#include "coordinator/takeover/run_lock.h"
#include "coordinator/turns/wakeup.h"
#include "proto/parameter_server.pb.h"

namespace shoal {

// Takeover and restore (section 7 of the protocol). Claims all ps under a fresh term. Then adopts
// the timeline that they agree on, or makes them load the newest verified checkpoint, or the seed.
// While leading, probes them every second, and starts over if one has lost its variables.
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

  // A timeline in which work may begin.
  struct Opened {
    uint64_t timeline = 0;
    bool adopted = false;  // workers of the former coordinator may still hold leases
    uint64_t base = 0;     // all steps below are applied everywhere
    std::vector<uint64_t> done_after_base;  // so are these
    std::string checkpoint;  // directory of the loaded checkpoint; empty: seed, or adopted
    std::optional<StoredCheckpoint> loaded;  // the same checkpoint
  };

  struct Options {
    EventLoop* loop = nullptr;  // these outlive this
    Network* network = nullptr;
    CheckpointStore* store = nullptr;  // used in Offload only
    RunLock* lock = nullptr;           // of the store's run; null: no other process writes there
    std::vector<std::string> addresses;
    std::string job_text;
    uint32_t job_fingerprint = 0;
    uint32_t shard_map_fingerprint = 0;  // for this number of ps
    // Max counts in a reply of a ps: steps applied after a base, and ranges written.
    uint64_t max_applied_after_base = std::numeric_limits<uint64_t>::max();
    uint64_t max_written_ranges = std::numeric_limits<uint64_t>::max();
    uint32_t coordinator_id = 0;  // random
    proto::Claimant self;         // shown to other coordinators
    bool take_over = false;       // take the ps away from another run too
    // Returns OK if training may begin at step 0. Asked only if there is no checkpoint, not even a
    // damaged one. Called on another thread.
    std::function<absl::Status()> may_begin_anew;
    // Makes the first checkpoint of a training, under a term, after may_begin_anew and on the same
    // thread. Empty: training begins with the seed.
    std::function<absl::StatusOr<StoredCheckpoint>(uint64_t term)> make_first;
    // Gets the content of the store at the start, newest first.
    std::function<void(const std::vector<StoredCheckpoint>&)> on_stored;
    std::function<void(const Opened&)> on_opened;
    // The timeline is over: its steps and results no longer count.
    std::function<void(const std::string& why)> on_over;
    // Returns the end of the run if `newest`, a checkpoint of this job, is the run's last one.
    // Returns an error if the run's files do not tell. Called on another thread.
    std::function<absl::StatusOr<std::optional<RunEnd>>(const StoredCheckpoint& newest)> end_of_run;
    // Returns true if no worker trains. The job may then have ended without this coordinator: its
    // predecessor may have dismissed the workers.
    std::function<bool()> nobody_trains;
    // Gets the replies about cuts and stopping.
    std::function<void(int ps, const proto::ControlReply&)> on_reply;
    // Returns the step of the open timeline below which the workers have reported all steps.
    std::function<uint64_t()> done_below;
    // Returns the size of the training set, for the ps; 0: not known yet.
    std::function<uint64_t()> training_examples;
    // Gets the steps of the open timeline that a ps has applied, and the done_below of the
    // question.
    std::function<void(int ps, const proto::Claimed&)> on_applied;
    // The stream to a ps is new: pending requests must be sent again.
    std::function<void(int ps)> on_reconnected;
    // Returns whether a cut is in progress. Meanwhile no stream is reopened for a new certificate.
    // Null: there are no cuts.
    std::function<bool()> is_cutting;
    // This coordinator cannot continue.
    std::function<void(const absl::Status&)> on_failed;
    Wakeup* wakeup = nullptr;  // raised for TakeEnd
  };
  explicit PsFleet(Options options);

  void Start();
  // Adds the term and sends to one ps, if it is connected. Sends a Claim first if this stream has
  // not had one of the term: the ps would reject the command.
  void Send(int ps, proto::ControlRequest request);
  // Adds the term and sends to all ps that are connected.
  void Broadcast(const proto::ControlRequest& request);
  // Takes a fresh term and keeps the timeline. A ps identifies a cut by term and step, so a second
  // cut at the same step needs a fresh term. Requires Phase::kLeading.
  void RenewTerm();
  // Sends the value of Options::training_examples to all ps now. The next probe, within a second,
  // would do the same.
  void SendExamples() { Broadcast(ClaimRequest()); }
  // The done set is wrong: claims all ps under a fresh term, as after a takeover, and rebuilds it
  // from their answers. Requires Phase::kLeading.
  void ClaimAgain(const std::string& why) { StartOver(why); }
  // No plan of the job explains the steps that the ps hold, or they use another plan. Claims all ps
  // under a fresh term, and makes them load the newest verified checkpoint, or the seed. Requires
  // Phase::kLeading.
  void Restore(const std::string& why);
  // Returns the end of the run if the store was found to hold it since the last call: nothing is
  // left to do.
  std::optional<RunEnd> TakeEnd() { return std::exchange(end_, std::nullopt); }
  // The steps that every ps has applied, by its latest answer. Requires an adopted timeline, in
  // which all ps have answered.
  struct Applied {
    uint64_t base = 0;                 // all steps below it
    std::vector<uint64_t> after_base;  // and these
  };
  Applied AppliedEverywhere() const;
  // The highest number of updates of a chunk, by the latest answers of the ps.
  uint64_t HighestUpdates() const;
  // Reopens streams that have an old certificate. Has no effect during a cut.
  void ReopenOldStreams();
  // Allows every ps that asked to leave to do so; returns these ps.
  std::vector<int> ReleaseDeparting();
  // A ps that may leave stays: treats it as if it had not asked.
  void ForgetDeparture(int ps) { peers_[ps].departure = Departure::kNone; }
  // Tells all ps to end, also one whose stream is being reopened or has broken. From then on the
  // loss of a ps is not logged.
  void Dismiss();
  bool dismissed() const { return dismissed_; }
  // Stops claims, probes and reconnecting, and tells the ps that this coordinator resigns.
  void Close();

  int size() const { return static_cast<int>(peers_.size()); }
  Phase phase() const { return phase_; }
  uint64_t term() const { return term_; }
  uint64_t timeline() const { return timeline_; }
  // Why the coordinator waits for a ps, for example "not reachable".
  struct Wait {
    const char* why;
    Time since;
  };
  // Returns none if it does not wait for this ps.
  std::optional<Wait> WaitFor(int ps) const;
  // Describes each wait in a line, for console and status. Empty after Close.
  std::vector<std::string> Waiting() const;

  // The departure of a ps process. A new process in its place starts at kNone.
  //
  //   kNone ── Departing ──▶ kAsked ── ReleaseDeparting ──▶ kAllowed ── gone, or ForgetDeparture
  //                            ▲ Departing again, over a new stream: answer lost ─┘
  enum class Departure { kNone, kAsked, kAllowed };
  // The coordinator of another run holds the ps.
  struct Held {
    proto::ClaimRejected rejection;
    Time since{};  // the first rejection
  };
  struct Peer {
    std::unique_ptr<PsLink> link;
    std::optional<proto::ServerHello> hello;
    std::optional<proto::Claimed> claimed;  // the latest answer, of any term
    bool claimed_now = false;               // it answered a Claim of term_
    uint64_t claim_sent = 0;                // term of the newest Claim on this stream; 0: none
    bool loaded = false;                    // it answered Loaded for term_
    std::optional<Held> held;               // it has rejected a Claim of term_
    Departure departure = Departure::kNone;
    Time departure_since{};
    int rows_wanted = 0;    // rows of loading_ that are being read for it
    uint64_t restarts = 0;  // how often another process took its place
  };
  const Peer& peer(int ps) const { return peers_[ps]; }
  // Returns since when the first ps is in this state; none if no ps is.
  std::optional<Time> DepartureSince(Departure departure) const;

 private:
  void Claim();
  // Claims after a pause. Ignores all answers until then.
  void ClaimAfter(Time pause);
  void BeginClaiming();
  // Sets term_ to a fresh term. If none is left, fails the fleet and returns false.
  bool TakeTerm();
  proto::ControlRequest ClaimRequest() const;
  void Probe();
  std::vector<FieldLimit> ReplyLimits() const;
  // "ps 1 at HOST:PORT".
  std::string NameOf(int ps) const { return DescribePs(ps, options_.addresses[ps]); }
  void LookForEnd();
  void KeepEnd(const RunEnd& end);
  void SetDeparture(Peer& peer, Departure departure);
  // Whether the fleet awaits no answer of this ps, except to a probe.
  bool IsQuiet(int ps) const;
  void OnHello(int ps, const proto::ServerHello& hello);
  void OnReply(int ps, const proto::ControlReply& reply);
  void OnClaimed(int ps, const proto::Claimed& claimed);
  // `by`: the coordinator that got the promise.
  void OnTermRejected(int ps, uint64_t promised_term, const proto::Claimant& by);
  void OnClaimRejected(int ps, const proto::ClaimRejected& rejected);
  void OnLoaded(int ps);
  void OpenTimeline();
  void OnLoadFailed(const proto::LoadFailed& failed);
  absl::Status WhyBad(const proto::LoadFailed& failed, const std::string& reason) const;
  void OnRowsWanted(int ps, const proto::RowsWanted& wanted);
  void Decide();
  // Continues once this coordinator holds the lock of the run directory.
  void Resume();
  void LookForCheckpoint();
  void LoadAll(const std::optional<StoredCheckpoint>& checkpoint);
  void SendLoad(int ps);
  void Adopt();
  // The timeline is over: claims again under a fresh term. At once if the timeline before lasted,
  // otherwise after a pause. This limits a ps that always gives a reason to one claim a second.
  void StartOver(const std::string& why);
  void Fail(const absl::Status& status);

  const Options options_;
  CheckpointSearch checkpoints_;
  EndSearch ends_;
  std::vector<Peer> peers_;
  Phase phase_ = Phase::kClaiming;
  uint64_t term_ = 0;
  uint64_t timeline_ = 0;
  uint32_t highest_term_number_ = 0;
  std::optional<StoredCheckpoint> loading_;
  std::unique_ptr<CheckpointRows> rows_;  // of loading_, until the timeline opens
  absl::Status rows_failure_;             // why rows of loading_ were not sent
  std::optional<RunEnd> end_;             // see TakeEnd
  Timer probe_{options_.loop};
  Timer claim_again_{options_.loop};
  Backoff claims_;             // pauses before claims
  bool started_over_ = false;  // since the last timeline that lasted
  bool restore_ = false;       // restore after the next claim, do not adopt
  Time phase_since_{};
  bool dismissed_ = false;
  bool closed_ = false;
  const Scope scope_{options_.loop};
};

}  // namespace shoal
