#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/log/logging.h"
#include "common/metrics/metric_samples.h"
#include "common/rpc/network.h"
#include "common/rpc/scope.h"
#include "ps/cuts.h"
#include "ps/holder.h"
#include "ps/push_plan.h"
#include "ps/row_fetch.h"
#include "ps/server_stats.h"
#include "ps/session.h"
#include "ps/variable_loading.h"

namespace shoal {

namespace proto {
class Applied;
class Claim;
class ExchangeHello;
class Load;
class Pull;
class Push;
}  // namespace proto

// The ps as a state machine over streams: rules 1 to 7 of the protocol. Accepts Exchange and
// Control streams; holds term, timeline, and a VariableStore once a Load has filled it. A message
// can at worst end the stream that it came by. All calls on the loop's thread.
class ParameterServer {
 public:
  struct Options {
    int index = 0;
    uint64_t incarnation = 0;   // random, not 0
    EventLoop* loop = nullptr;  // these outlive this
    FileSystem* files = RealFileSystem();
    std::string coordinator;  // its address, for people; empty: not known
    int workers = 0;          // workers that the cluster spec lists
    MemoryLimit memory;       // limit of this machine
    // Called at each Load with the bytes of memory that this ps may take at times, besides those it
    // holds then. May be null.
    std::function<void(uint64_t bytes)> on_memory_needs;
    // Called once, when the job is over or this ps may leave.
    std::function<void()> on_stopped;
  };
  explicit ParameterServer(Options options);

  // For Network::Listen.
  absl::StatusOr<StreamCallbacks> Accept(const std::string& method, std::unique_ptr<Stream> stream);

  // Asks the coordinator for a checkpoint, then calls on_stopped: when the checkpoint is written or
  // has failed, after 2 s without a coordinator, whose streams may just have broken, or after
  // `grace`. An empty ps leaves at once.
  void Leave(Time grace);
  // Adds its stats for Prometheus.
  void Collect(MetricSamples* out) const;
  // Why it cannot serve now, in a line; empty while it can, also before a coordinator has come.
  std::string NotReady() const;

  uint64_t promised_term() const { return promised_term_; }
  // 0 when empty.
  uint64_t timeline() const { return timeline_ ? timeline_->term : 0; }
  // Null when empty.
  const VariableStore* variables() const {
    return timeline_ ? timeline_->variables.store.get() : nullptr;
  }

 private:
  // The timeline that a Load has opened.
  struct Timeline {
    Timeline(uint64_t opened_by, LoadedVariables loaded, const Options& options)
        : term(opened_by),
          variables(std::move(loaded)),
          cuts(options.index, options.loop, options.files, variables.store.get()) {}

    uint64_t term;
    LoadedVariables variables;
    Cuts cuts;
    std::optional<PushPlan> plan;  // none: the number of examples is not known yet
  };
  // A Load that is read off the loop, or row by row from the coordinator. The ps is empty until it
  // is done.
  struct Loading {
    Loading() {}  // spelt out: clang 14 cannot deduce it for std::optional inside this class
    uint64_t term = 0;
    uint64_t cut_step = 0;           // F of the checkpoint
    std::weak_ptr<Session> session;  // of the last request
    LoadRequest request;             // until it is read
    // If this machine does not see the checkpoint: the variables, and the fetch that fills them.
    LoadedVariables variables;
    std::unique_ptr<RowFetch> rows;
  };

  // Warns every few seconds while no coordinator comes.
  void WatchCoordinator();
  void Greet(const SessionPtr& session);
  void End(const SessionPtr& session, const absl::Status& status);
  void OnMessage(const SessionPtr& session, const Message& message);
  void OnExchange(const SessionPtr& session, const Message& message);
  void OnControl(const SessionPtr& session, const Message& message);

  void OnExchangeHello(const SessionPtr& session, const proto::ExchangeHello& hello);
  void OnPush(const SessionPtr& session, const proto::Push& push, const Message& message);
  void OnPull(const SessionPtr& session, const proto::Pull& pull);
  absl::Status CheckTimeline(uint64_t timeline) const;
  // The names in a push or pull: the refusal repeats them, so the worker knows which request it
  // answers.
  struct Asked {
    uint64_t timeline = 0;
    uint64_t cut_step = 0;
    std::optional<uint64_t> version = std::nullopt;
  };
  static Asked AskedBy(const proto::Pull& pull);
  bool AcceptTimeline(const SessionPtr& session, const Asked& asked);
  // Answers are made when they can be written, from the state at that moment.
  Message MakeApplied(Session* session, proto::Applied applied, bool want_values);
  absl::StatusOr<Message> MakeValues(Session* session, const proto::Pull& pull, int chunk);
  // `reason` kOutOfRange: the version is dropped, as its round is complete.
  Message MakeRefused(Session* session, const absl::Status& reason, const Asked& asked);
  bool CheckJob(const SessionPtr& session);
  // Returns the chunk of the store with this number; null: there is none.
  const Chunk* FindChunk(int chunk);
  // kUnavailable: the plan is not known yet; kInvalidArgument: the push does not agree with it.
  absl::Status CheckPlan(const proto::Push& push) const;
  absl::StatusOr<PushResult> Apply(const proto::Push& push, const Message& message);
  // Returns the chunk's live values, encoded to travel.
  ChunkSnapshot ReadLive(int chunk);
  ChunkSnapshot AsTheyTravel(int chunk, ChunkSnapshot values);
  absl::Status CheckPulledVersion(const proto::Pull& pull, uint64_t end);

  void OnClaim(const SessionPtr& session, uint64_t term, const proto::Claim& claim);
  // The plan of the timeline, once there is one and training_examples_ are known.
  void TakePlan();
  // Returns whether the holder keeps out the sender of a command of a higher term. If so, answers
  // it.
  bool RefusedByHolder(const SessionPtr& session, const proto::ControlRequest& request);
  void OnLoad(const SessionPtr& session, uint64_t term, const proto::Load& load);
  // Reads the newest Load off the loop. No other one is being read, so at most one waits.
  void ReadLoad();
  void OnLoadRead(uint64_t term, LoadOutcome outcome);
  void FinishLoad(uint64_t term, LoadOutcome outcome);
  void OnStop(const SessionPtr& session, uint64_t term);
  void OnClosed(uint64_t session);
  void SendDeparting(const SessionPtr& session);
  // Leaves without a checkpoint unless a coordinator comes soon.
  void AwaitCoordinator();
  // Whether a coordinator is connected.
  bool Coordinated() const;
  void Stopped(const std::string& why, LogFields fields = {});

  VariableStore& store() { return *timeline_->variables.store; }

  const Options options_;
  uint64_t promised_term_ = 0;
  uint64_t training_examples_ = 0;    // by the newest Claim; 0: its coordinator does not know
  Holder holder_;                     // has the promise of promised_term_
  uint64_t refused_term_ = 0;         // the term of the last claim that holder_ rejected
  std::optional<Timeline> timeline_;  // none: empty
  std::optional<Loading> loading_;
  bool reading_load_ = false;  // off the loop; loading_ may be a newer one
  bool stopped_ = false;
  bool leaving_ = false;
  Timer grace_{options_.loop};  // until it leaves in any case
  Timer alone_{options_.loop};  // end of the wait for a coordinator, for a ps that leaves
  Time last_command_{};         // from a coordinator, or the start
  ServerStats figures_;
  Timer watch_{options_.loop};
  uint64_t next_session_ = 0;
  std::map<uint64_t, SessionPtr> sessions_;
  const Scope scope_{options_.loop};
};

}  // namespace shoal
