#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/log/logging.h"
#include "common/memory/memory_limit.h"
#include "common/rpc/scope.h"
#include "ps/loading/row_fetch.h"
#include "ps/loading/variable_loading.h"
#include "ps/services/holder.h"
#include "ps/services/ps_state.h"
#include "ps/streams/stream_service.h"

namespace shoal {

namespace proto {
class Claim;
class ControlRequest;
class Load;
}  // namespace proto

// Serves the streams of coordinators: rules 1 to 3 of the protocol; Cuts keeps rules 6 and 7. Loads
// variables, and ends this ps when it may leave. A message can at worst end the stream that it came
// by. Loop thread only.
class ControlService : public StreamService {
 public:
  struct Options {
    std::string coordinator;  // its address, for people; empty: not known
    int workers = 0;          // workers that the cluster spec lists
    MemoryLimit memory;       // limit of this machine
    // Called when a Load is about to open a timeline, with the temporary memory in bytes that this
    // ps may need besides the memory it then holds. May be null.
    std::function<void(uint64_t bytes)> on_memory_needs;
    // Called once, when the job is over or this ps may leave.
    std::function<void()> on_stopped;
  };
  ControlService(Options options, PsState* state);  // `state` outlives this

  // See ParameterServer::Leave and CheckReady.
  void Leave(Time grace);
  absl::Status CheckReady() const;
  // The time since the last command under the promised term, or the start. No other command counts.
  Time silence() const { return state_->loop->Now() - std::max(start_, holder_.last_command()); }

 private:
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

  void SendHello(const SessionPtr& session) override;
  void OnMessage(const SessionPtr& session, const Message& message) override;
  void OnClosed() override;

  // Warns every few seconds while no coordinator comes.
  void WatchCoordinator();
  // A Claim with at least the promised term, or a command of the promised term's coordinator.
  void OnCommand(const SessionPtr& session, const proto::ControlRequest& request);
  void OnClaim(const SessionPtr& session, uint64_t term, const proto::Claim& claim);
  void SendClaimed(const SessionPtr& session, uint64_t done_below);
  // Makes the plan of the timeline, once there is one and training_examples_ is known.
  void MakePlan();
  // Returns whether the claim names another job than that of the variables held.
  bool NamesOtherJob(const proto::Claim& claim) const;
  // Returns whether the holder rejects a command of a higher term. If so, answers it.
  bool RejectForHolder(const SessionPtr& session, const proto::ControlRequest& request);
  // Returns whether a command comes from a client that has not shown that it is the coordinator of
  // the command's term. If so, answers it and changes nothing.
  bool AnswerStranger(const SessionPtr& session, const proto::ControlRequest& request);
  // Answers a command with the holder, and logs `why` once for each term.
  void Reject(const SessionPtr& session, uint64_t term, const std::string& why);
  void OnLoad(const SessionPtr& session, uint64_t term, const proto::Load& load);
  // Reads the newest Load off the loop. No other one is being read, so at most one waits.
  void ReadLoad();
  void OnLoadRead(uint64_t term, LoadOutcome outcome);
  void FinishLoad(uint64_t term, LoadOutcome outcome);
  void OnStop(const SessionPtr& session, uint64_t term);
  void SendDeparting(const SessionPtr& session);
  // Leaves without a checkpoint unless a coordinator comes soon.
  void AwaitCoordinator();
  // Logs the reason and calls on_stopped, the first time only.
  void End(const std::string& reason, const LogFields& fields = {});

  const Options options_;
  PsState* const state_;
  uint64_t training_examples_ = 0;  // by the newest Claim; 0: its coordinator does not know
  Holder holder_;                   // has the promise of the promised term
  uint64_t rejected_term_ = 0;      // of the last command that Reject() has answered
  std::optional<Loading> loading_;
  bool reading_load_ = false;  // off the loop; loading_ may be a newer one
  bool stopped_ = false;
  bool leaving_ = false;
  const Time start_;
  Timer grace_{state_->loop};             // until it leaves in any case
  Timer coordinator_wait_{state_->loop};  // end of the wait for a coordinator, for a ps that leaves
  Timer watch_{state_->loop};
  const Scope scope_{state_->loop};
};

}  // namespace shoal
