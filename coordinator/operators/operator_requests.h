#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_store.h"
#include "coordinator/operators/cluster_service.h"
#include "coordinator/steps/membership.h"
#include "coordinator/turns/wakeup.h"
#include "proto/cluster.pb.h"

namespace shoal {

// The requests of operators by the Cluster service: status, drain of a worker or of the
// coordinator, checkpoint now. A drain waits here until the task has gone. A checkpoint request
// waits until a checkpoint is written that holds all steps done at the time of the request. Loop
// thread only.
class OperatorRequests {
 public:
  // A requested checkpoint: of this timeline, and holding at least the steps below `at_least`.
  struct Wanted {
    uint64_t timeline = 0;
    uint64_t at_least = 0;
  };
  struct Options {
    Membership* membership = nullptr;  // outlives this
    int ps_count = 0;
    std::function<proto::StatusReply()> status;
    // Stops the coordinator in order; OnOver follows.
    std::function<void()> stop;
    // Returns the requirements on a checkpoint that is requested now, or why there will be none.
    std::function<absl::StatusOr<Wanted>()> wanted_now;
    // The newest checkpoint of this coordinator; outlives this.
    const std::optional<StoredCheckpoint>* newest = nullptr;
    // Raised when a checkpoint was requested: AdmitCheckpoints is due.
    Wakeup* wakeup = nullptr;
  };
  explicit OperatorRequests(Options options);

  // Takes over a new stream; returns the callbacks for it. Requires a method that ClusterService
  // serves.
  absl::StatusOr<StreamCallbacks> Accept(const std::string& method, std::unique_ptr<Stream> stream);

  // Answers the checkpoint requests since the last call, or lets them wait for a checkpoint. Call
  // it after the outcomes are recorded. Otherwise a failure before the request would reject it.
  void AdmitCheckpoints();
  // True if an admitted request waits.
  bool checkpoint_wanted() const { return !checkpoints_.empty(); }
  // Answers all pending requests that this checkpoint satisfies.
  void OnCommitted(const StoredCheckpoint& checkpoint);
  // Rejects all checkpoint requests that wait.
  void RejectCheckpoints(const std::string& why);
  // The worker's stream is gone: answers its drains. Its record tells whether it left in order.
  void OnWorkerGone(const Worker& worker, const std::string& why);
  // The run is over, with the status of its on_over. `kept`: no done step is lost. Later requests
  // to drain the coordinator get the same answer.
  void OnOver(const absl::Status& status, bool kept);

 private:
  struct Checkpoint {
    uint64_t request = 0;
    Wanted wanted;
  };
  void OnDrain(uint64_t request, const proto::DrainRequest& drain);
  void DrainCoordinator(uint64_t request);
  void AnswerCoordinatorDrains();
  void OnCheckpoint(uint64_t request);
  void Forget(uint64_t request);

  const Options options_;
  ClusterService service_;
  std::vector<uint64_t> new_checkpoints_;  // requests, see AdmitCheckpoints
  std::vector<Checkpoint> checkpoints_;
  std::multimap<StepDispatcher::WorkerKey, uint64_t> drains_;  // worker that leaves -> request
  std::vector<uint64_t> coordinator_drains_;                   // requests to drain this coordinator
  std::optional<absl::StatusOr<proto::DrainReply>> drained_;   // the answer to those, once over
};

}  // namespace shoal
